package trust

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandboxd/sandboxd/internal/term"
)

// maxRecords bounds how many names a store pins.
const maxRecords = 1024

// ErrFull: the store pins as many names as it may.
var ErrFull = fmt.Errorf("trust store holds %d packages", maxRecords)

// ErrNotApproved: a package that is not trusted on first use was not approved.
var ErrNotApproved = errors.New("not approved")

// Store is the record of what is trusted. It is safe for concurrent use, by
// several processes too.
type Store struct {
	dir     string
	now     func() time.Time
	replace func(from, to string) error // os.Rename; tests make it fail
}

// Options of [Store.Precheck] and [Store.Admit]. The zero value refuses what has changed.
type Options struct {
	// TrustChanges trusts a local package that has changed, and lies where it did
	// when it was recorded, as on first use; default: no.
	TrustChanges bool
}

// Folder returns the folder of the records, one file with the ending .json each.
func Folder(state string) string { return filepath.Join(state, "trust") }

// Open returns the trust store of a state folder. It touches nothing.
func Open(state string) *Store {
	return &Store{dir: Folder(state), now: time.Now, replace: replaceFile}
}

// Precheck judges a package before any of its code runs: its module and its
// manifest. It returns nil when the package is trusted as it is or may be
// recorded by [Store.Admit] with the same options, a [*ChangedError] when it has
// changed, an error that matches [ErrNotApproved] when it has to be approved
// first. It writes nothing.
func (s *Store) Precheck(c Candidate, o Options) error {
	if err := c.check(); err != nil {
		return err
	}
	if _, err := s.judge(c, false); err != nil && !mayRecord(c, o, err) {
		return err
	}
	return nil
}

// Granted returns what was granted to a package as it is: nothing where it is not
// approved, or has changed.
func (s *Store) Granted(c Candidate) Grants {
	r, err := s.judge(c, false)
	if err != nil {
		return Grants{}
	}
	return r.Granted
}

// Admit judges a package whose tools are known, and records it on first use. It
// returns the record in force and whether this call wrote it: of several
// processes that admit a package at once, one gets true. A package that has
// changed is a [*ChangedError], unless o trusts changes: then it is recorded as
// it is, and what was granted to it before is not granted any more. Nothing is
// written where nothing is new.
func (s *Store) Admit(c Candidate, o Options) (Record, bool, error) {
	if err := c.complete(); err != nil {
		return Record{}, false, err
	}
	if r, err := s.judge(c, true); err == nil || !mayRecord(c, o, err) {
		return r, false, err
	}
	unlock, err := s.lock()
	if err != nil {
		return Record{}, false, err
	}
	defer unlock()
	r, err := s.judge(c, true) // another process may have been first
	if err == nil || !mayRecord(c, o, err) {
		return r, false, err
	}
	by := ByTrustChanges
	if errors.Is(err, errUnknown) {
		by = ByFirstUse
	}
	r, err = newRecord(c)
	if err != nil {
		return Record{}, false, err
	}
	r = r.stamp(by, Grants{}, s.now())
	if err := s.write(r); err != nil {
		return Record{}, false, err
	}
	return r, true, nil
}

// errUnknown: no record of the name, and none is needed.
var errUnknown = errors.New("package is not known")

// judge compares a package with its record, and returns the record when they
// agree. Without tools, what the manifest says of them is compared as a part of
// the manifest only: the module may say more.
func (s *Store) judge(c Candidate, tools bool) (Record, error) {
	was, err := s.read(c.Name)
	if err != nil {
		if errors.Is(err, errUnknown) && c.remote() {
			return Record{}, fmt.Errorf("package %s at %s: %w; %s",
				c.Name, term.Line(c.Source), ErrNotApproved, approve(c.Source, c.Name, c.Package.Manifest.Name))
		}
		return Record{}, err
	}
	now, err := newRecord(c)
	if err != nil {
		return Record{}, err
	}
	if !tools && len(now.Tools) == 0 {
		now.Tools = was.Tools
	}
	same := was.ModuleDigest == now.ModuleDigest && was.DefinitionDigest == now.DefinitionDigest && was.FilesDigest == now.FilesDigest
	if !same || tools && !slices.EqualFunc(was.Tools, now.Tools, ToolPin.equal) {
		return Record{}, newChangedError(was, now)
	}
	return was, nil
}

// mayRecord reports whether a package that judge refused is to be recorded.
func mayRecord(c Candidate, o Options, refused error) bool {
	if changed, ok := errors.AsType[*ChangedError](refused); ok {
		return o.TrustChanges && !c.remote() && c.Source == changed.Trusted.Source
	}
	return errors.Is(refused, errUnknown)
}

// Review returns what [Store.Approve] would change, as text with a unified
// diff: against the record, or against nothing where there is none. It is empty
// where nothing would change, and writes nothing.
func (s *Store) Review(c Candidate) (string, error) {
	if err := c.complete(); err != nil {
		return "", err
	}
	_, diff, err := s.review(c)
	return diff, err
}

// Approve trusts a package as it is: its module, tools, claims and limits, and
// all that it requests. It returns what that changes, as [Store.Review] does.
func (s *Store) Approve(c Candidate) (diff string, err error) {
	if err := c.complete(); err != nil {
		return "", err
	}
	unlock, err := s.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	r, diff, err := s.review(c)
	if err != nil {
		return "", err
	}
	return diff, s.write(r)
}

// review returns the approved record of a package and what it changes.
func (s *Store) review(c Candidate) (Record, string, error) {
	was, err := s.read(c.Name)
	if err != nil && !errors.Is(err, errUnknown) {
		return Record{}, "", err
	}
	now, err := newRecord(c)
	if err != nil {
		return Record{}, "", err
	}
	now = now.stamp(ByApprove, now.requested(), s.now())
	return now, describe(was, now), nil
}

// Records returns what is trusted, sorted by name. A record that cannot be read
// is an error, a [*RecordError].
func (s *Store) Records() ([]Record, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var rs []Record
	for _, n := range names {
		r, err := s.read(n)
		if errors.Is(err, errUnknown) { // removed since
			continue
		}
		if err != nil {
			return nil, err
		}
		rs = append(rs, r)
	}
	return rs, nil
}
