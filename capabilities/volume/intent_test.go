package volume

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

// journal keeps intents in memory.
type journal struct {
	name  string
	fault func(op string) error

	mu      sync.Mutex
	pending []Intent
	done    []string
}

func (j *journal) Owner() string { return j.name }

func (j *journal) hit(op string) error {
	if j.fault == nil {
		return nil
	}
	return j.fault(op)
}

func (j *journal) Pending(context.Context) ([]Intent, error) {
	if err := j.hit("pending"); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Intent(nil), j.pending...), nil
}

func (j *journal) Done(_ context.Context, id string) error {
	if err := j.hit("done"); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, p := range j.pending {
		if p.ID == id {
			j.pending = append(j.pending[:i:i], j.pending[i+1:]...)
			j.done = append(j.done, id)
			return nil
		}
	}
	return nil
}

func (j *journal) add(data []byte) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	id := rand.Text()
	j.pending = append(j.pending, Intent{ID: id, Data: data})
	return id
}

func (j *journal) left() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.pending)
}

// commit commits a change as a transaction with a store does.
func (j *journal) commit(ctx context.Context, h *HostDir, c *Change) error {
	s, err := h.stage(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Lock(ctx); err != nil {
		return err
	}
	if err := s.Check(ctx); err != nil {
		s.Drop()
		return err
	}
	data := s.Intent()
	if data == nil {
		return nil
	}
	if err := j.hit("commit"); err != nil {
		s.Drop()
		return err
	}
	id := j.add(data)
	if err := s.Publish(ctx); err != nil {
		return err
	}
	return j.Done(ctx, id)
}

// moved returns an intent for a folder that is a copy of the one it was made for:
// inode numbers and times of status changes are others.
func moved(t *testing.T, data []byte, dir string, stamps map[uint64]Stamp) []byte {
	in, err := parseIntent(data)
	must(t, err)
	in.Folder = dir
	for i, o := range in.Operations {
		if st, ok := stamps[o.Old.Inode]; ok && o.Old.Exists && o.Old.Kind != Dir {
			in.Operations[i].Old.Inode, in.Operations[i].Old.Changed = st.Inode, st.Changed
			if o.Old.Kind == Symlink { // its time cannot be copied
				in.Operations[i].Old.ModTime = st.ModTime
			}
		}
	}
	data, err = json.Marshal(in)
	must(t, err)
	return data
}

// FuzzIntent resumes whatever a decoder lets through: nothing outside the folder
// is touched, and nothing happens without a stage.
func FuzzIntent(f *testing.F) {
	stage := ".sandboxd-tx-0123456789abcdef-" + strings.Repeat("A", 26)
	for _, ops := range [][]operation{
		nil,
		{{Do: deedTake, Path: "f", Part: 1, Old: Stamp{Exists: true}}},
		{{Do: deedTake, Path: "f", Part: 1, Moved: true, Old: Stamp{Exists: true}}, {Do: deedPlace, Path: "d/f", Part: 1, Moved: true, Mode: 0o600}},
		{{Do: deedMkdir, Path: "n", Mode: 0o755}, {Do: deedPlace, Path: "n/f", Part: 1}, {Do: deedTimes, Path: ".", Kind: Dir}},
		{{Do: deedPlace, Path: "../secret", Part: 1}},
		{{Do: deedPlace, Path: "out/secret", Part: 1}},
		{{Do: deedTake, Path: "out/secret", Part: 1, Old: Stamp{Exists: true}}},
		{{Do: deedTimes, Path: "f", Kind: File}},
	} {
		b, err := json.Marshal(intent{Version: intentVersion, Stage: stage, Operations: ops})
		must(f, err)
		f.Add(b)
	}
	f.Add([]byte(`{"version":1,"stage":".."}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := parseIntent(b)
		if (err == nil) != (in != nil) {
			t.Fatalf("%v, %v", in, err)
		}
		if err != nil && !errors.Is(err, capabilities.EINVAL) {
			t.Errorf("%v", err)
		}
		top := t.TempDir()
		plant(t, top, map[string]string{
			"secret": "secret", "v/f": "f", "v/d/g": "g", "v/out": "->..", "v/" + stage + "/n-1": "new",
		})
		err = open(t, filepath.Join(top, "v")).Resume(t.Context(), b)
		after := image(t, top)
		if after["secret"] != "-rw-r--r-- secret" {
			t.Errorf("%v, left %v", err, after)
		}
		for path := range after {
			if path != "secret" && path != "v" && !strings.HasPrefix(path, "v/") {
				t.Errorf("%s made, %v", path, err)
			}
		}
	})
}
