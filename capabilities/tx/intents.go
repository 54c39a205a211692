package tx

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// intentPage is how many intents of a folder are read at once. There are few: one
// a process that was killed, and those that are done but for their key.
const intentPage = 100

// intentSpace holds the intents of all folders of the host. They belong to no
// principal: whoever uses a folder next carries them out.
var intentSpace = store.Space{Principal: "_host", Package: "_folders", Area: store.AreaRedo}

// ownerKey holds the store's own name. Paths of folders are absolute: none of them
// begins like this key, or that of [changeKey].
var ownerKey = store.Key{Space: intentSpace, Name: "owner"}

// intentKey is that of what a commit does in a folder. It names no host: a store
// that several hosts use is given no folders.
func intentKey(folder, id string) store.Key {
	return store.Key{Space: intentSpace, Name: folder + "\x00" + id}
}

// changeKey has another version whenever a folder was changed. What rests on the
// folder demands that it has not.
func changeKey(folder string) store.Key {
	return store.Key{Space: intentSpace, Name: "changed\x00" + folder}
}

// Intents keeps what was committed of host folders and may not be in place. It is
// safe for concurrent use.
type Intents struct {
	store store.Store
	owner string

	mu     sync.Mutex
	done   map[store.Key]struct{} // and still to be deleted
	doubts map[string]int         // by folder: the last intent of which the store did not tell whether it is committed
	last   int
}

// NewIntents returns the intents of a store that one host uses. The store is given
// a name of its own where it has none yet: by that it knows its stages in folders
// which other stores change too. The errors are those of the store.
func NewIntents(ctx context.Context, s store.Store) (*Intents, error) {
	owner, err := ownerOf(ctx, s)
	if errors.Is(err, store.ErrConflict) { // another process was faster
		owner, err = ownerOf(ctx, s)
	}
	if err != nil {
		return nil, fmt.Errorf("intents: %w", err)
	}
	return &Intents{store: s, owner: owner, done: map[store.Key]struct{}{}, doubts: map[string]int{}}, nil
}

func ownerOf(ctx context.Context, s store.Store) (string, error) {
	now, err := s.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	entries, err := now.Get(ctx, ownerKey)
	switch {
	case err != nil:
		return "", err
	case entries[0].Version != 0:
		return string(entries[0].Value), nil
	}
	owner := rand.Text()
	_, err = s.Commit(ctx, &store.Commit{
		ID: rand.Text(), Time: time.Now().UTC(),
		Guards: []store.Guard{{Key: ownerKey}}, Writes: []store.Write{{Key: ownerKey, Value: []byte(owner)}},
	})
	return owner, err
}

// Of returns those of one folder: its path as [volume.Folder.Path] has it.
func (i *Intents) Of(folder string) volume.Intents { return folderIntents{i, folder} }

// take returns the deletion of intents that are done, for a commit that may be
// asked for again, at most most of them. Who does not commit them gives them back
// by keep.
func (i *Intents) take(most int, id string) []store.Write {
	i.mu.Lock()
	defer i.mu.Unlock()
	var writes []store.Write
	for k := range i.done {
		if len(writes) == most {
			break
		}
		if strings.HasSuffix(k.Name, "\x00"+id) {
			continue // its own, of the first time
		}
		writes = append(writes, store.Write{Key: k, Delete: true})
		delete(i.done, k)
	}
	return writes
}

// keep takes back what take returned.
func (i *Intents) keep(writes []store.Write) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, w := range writes {
		i.done[w.Key] = struct{}{}
	}
}

func (i *Intents) isDone(k store.Key) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, done := i.done[k]
	return done
}

// doubt notes that it is not known whether an intent of a folder was committed.
func (i *Intents) doubt(folder string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last++
	i.doubts[folder] = i.last
}

// decide ends all doubt about a folder: what is not committed by now no longer can
// be. Else a commit could still show up, after a crash of the store say, when what
// it left in the folder was taken for waste.
func (i *Intents) decide(ctx context.Context, folder string) error {
	i.mu.Lock()
	last, doubt := i.doubts[folder]
	i.mu.Unlock()
	if !doubt {
		return nil
	}
	_, err := i.store.Commit(ctx, &store.Commit{
		ID: rand.Text(), Time: time.Now().UTC(), Writes: []store.Write{{Key: changeKey(folder)}},
	})
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.doubts[folder] == last { // none came up since
		delete(i.doubts, folder)
	}
	return nil
}

// folderIntents are the intents of one folder.
type folderIntents struct {
	all    *Intents
	folder string
}

var _ volume.Owner = folderIntents{}

// Owner is that of [volume.Owner]: the name of the store and of the folder. One
// that was moved has another: what is not in place there was committed for another
// path, and must not be taken for waste.
func (f folderIntents) Owner() string { return f.all.owner + "\x00" + f.folder }

// Pending is that of [volume.Intents].
func (f folderIntents) Pending(ctx context.Context) ([]volume.Intent, error) {
	prefix := f.folder + "\x00"
	if err := f.all.decide(ctx, f.folder); err != nil {
		return nil, fmt.Errorf("intents: %w", err)
	}
	now, err := f.all.store.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("intents: %w", err)
	}
	var list []volume.Intent
	for rest := store.Prefix(intentSpace, prefix); ; {
		page, err := now.Scan(ctx, rest, intentPage)
		if err != nil {
			return nil, fmt.Errorf("intents: %w", err)
		}
		for _, e := range page {
			if !f.all.isDone(e.Key) {
				list = append(list, volume.Intent{ID: strings.TrimPrefix(e.Name, prefix), Data: e.Value})
			}
		}
		if len(page) < intentPage {
			return list, nil
		}
		rest.From = page[len(page)-1].Name + "\x00"
	}
}

// Done is that of [volume.Intents]. The key is deleted by a later commit: until
// then an intent that is done is found to be so.
func (f folderIntents) Done(_ context.Context, id string) error {
	f.all.keep([]store.Write{{Key: intentKey(f.folder, id)}})
	return nil
}
