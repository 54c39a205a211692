package volume

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

// Intents keeps, outside of a folder, which of its changes were committed. What
// it keeps survives a killed process, and power loss if the folder's changes are
// to. It is safe for concurrent use.
type Intents interface {
	// Pending returns the intents of the folder that were committed, and that Done
	// was not called for. There may be more of them: one that is done does nothing.
	Pending(ctx context.Context) ([]Intent, error)
	// Done notes that an intent is in place, durably.
	Done(ctx context.Context, id string) error
}

// Owner is an [Intents] with a name that it has for good and shares with no
// other. A stage that a killed process had filled, but not committed, is deleted
// only by who knows that it was not: the owner. Without a name nobody does, and
// [HostDir.Abandoned] tells of it.
type Owner interface {
	Owner() string
}

// Intent is a change of a folder that was committed. Data is what the Intent
// method of the staged change returned.
type Intent struct {
	ID   string
	Data []byte
}

// Intending is a [Staged] whose change is committed elsewhere, between Check and
// Publish: what is staged in a folder of [OpenJournaled].
type Intending interface {
	Staged
	// Intent returns what Publish will do, as data: what was prepared is durable. It
	// needs the lock, and Check before it. It is nil where nothing changes, and for a
	// store whose changes are committed by publishing them. Who asks for it may have
	// committed it. From then on Publish goes forward only: what it could not do is
	// done by whoever uses the store next, and its error is neither a conflict nor
	// torn. Close leaves what was not published; whoever locks the store next asks
	// [Intents] what became of it. Who commits the same intent again, because it does
	// not know, does so before Close.
	Intent() []byte
	// Drop says that the intent was not committed and will not be: Close deletes what
	// was prepared. After Publish it does nothing.
	Drop()
}

var _ Intending = (*stagedChange)(nil)

// intentVersion is that of the form in which intents are kept.
const intentVersion = 1

// intent is what publishing a staged change will do.
type intent struct {
	Version    int         `json:"version"`
	Stage      string      `json:"stage"` // in the folder's root
	Folder     string      `json:"folder"`
	Key        string      `json:"key,omitempty"` // that of [Folder]
	Operations []operation `json:"operations"`
}

// deed is what an operation does.
type deed string

const (
	deedTake  deed = "take"  // moves what is at a path into the stage
	deedMkdir deed = "mkdir" // makes a directory
	deedPlace deed = "place" // moves what is in the stage to a path
	deedTimes deed = "times" // sets the time of what stays where it is
)

// operation is one step of a publication. Operations are in their order: what
// goes away, directories, files and links, times of files, times of directories.
type operation struct {
	Do      deed        `json:"do"`
	Path    string      `json:"path"`
	Part    int         `json:"part,omitempty"`  // which name in the stage
	Moved   bool        `json:"moved,omitempty"` // taken at one path and placed at another
	Kind    Kind        `json:"kind,omitempty"`  // of what is placed, or has its time set
	Old     Stamp       `json:"old,omitzero"`    // what is taken, replaced, or has its time set
	Mode    fs.FileMode `json:"mode,omitempty"`
	ModTime time.Time   `json:"modTime,omitzero"`
	// Follows: the call did not set this time. That the host does not let it be set
	// is no reason to fail.
	Follows bool `json:"follows,omitempty"`
}

// adjusts reports whether a file that is moved gets a mode and a time.
func (o operation) adjusts() bool { return o.Moved && o.Kind == File }

// stageNames are those of stages whose changes are committed elsewhere.
var stageNames = regexp.MustCompile(`^\.sandboxd-tx-([0-9a-f]{16}|)-[A-Z2-7]{26}$`)

// parseIntent reads an intent, and refuses with EINVAL what no folder writes.
func parseIntent(data []byte) (*intent, error) {
	var in intent
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", capabilities.EINVAL, err)
	}
	if in.Version != intentVersion {
		return nil, fmt.Errorf("%w: version %d, want %d", capabilities.EINVAL, in.Version, intentVersion)
	}
	if !stageNames.MatchString(in.Stage) {
		return nil, fmt.Errorf("%w: stage %q", capabilities.EINVAL, in.Stage)
	}
	taken, placed := map[int]bool{}, map[int]bool{}
	for _, o := range in.Operations {
		if !o.valid(taken, placed) {
			return nil, fmt.Errorf("%w: operation %s %q", capabilities.EINVAL, o.Do, o.Path)
		}
	}
	return &in, nil
}

// valid reports whether an operation is one of a publication. taken are the
// parts that were moved into the stage before, placed those that were used.
func (o operation) valid(taken, placed map[int]bool) bool {
	const bits = fs.ModePerm | fs.ModeSetgid | fs.ModeSticky
	if !plain(o.Path) || o.Mode&^bits != 0 || o.Kind > Special || o.Old.Kind > Special {
		return false
	}
	if o.Path == "." {
		return o.Do == deedTimes && o.Kind == Dir
	}
	switch o.Do {
	case deedTake:
		if o.Part < 1 || !o.Old.Exists || placed[o.Part] {
			return false
		}
		placed[o.Part], taken[o.Part] = true, o.Moved
		return true
	case deedMkdir:
		return true
	case deedPlace:
		if o.Part < 1 || o.Moved != taken[o.Part] || (!o.Moved && placed[o.Part]) {
			return false
		}
		placed[o.Part], taken[o.Part] = true, false
		return true
	case deedTimes:
		return o.Kind == File || o.Kind == Dir
	}
	return false
}
