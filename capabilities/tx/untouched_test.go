package tx

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

// What a call did not look at is no part of what it prepares, and what it looked at
// is, though nothing is changed.
func TestUntouched(t *testing.T) {
	a, file := folder(t, "a")
	b, _ := folder(t, "b")
	x := begin(a, b)
	read(t, x.Overlay("a"), "f")
	if x.Overlay("b") != x.Mount("b").Overlay() {
		t.Error("two views of a volume")
	}
	p, err := x.Prepare(t.Context())
	must(t, err)
	if c := p.Changes["a"]; len(p.Changes) != 1 || c == nil || len(c.Guards) == 0 || !p.Empty() {
		t.Fatalf("prepared %+v", p)
	}
	must(t, os.WriteFile(file, []byte("somebody else's"), 0o600))
	if err := x.Commit(t.Context(), p, store.Commit{}); !errors.Is(err, volume.ErrConflict) {
		t.Errorf("what was looked at has changed: %v", err)
	}

	late := begin(a)
	must(t, late.Rollback())
	o := late.Overlay("a")
	if _, err := o.List(o.Root()); !errors.Is(err, capabilities.EBADF) {
		t.Errorf("a view after the end: %v", err)
	}
}

// mute is a store that does not answer.
type mute struct{ store.Snapshot }

var errMute = errors.New("no answer")

func (mute) Get(context.Context, ...store.Key) ([]store.Entry, error) { return nil, errMute }

func (mute) Scan(context.Context, store.Range, int) ([]store.Entry, error) { return nil, errMute }

// A part that nobody looked at prepares to nothing. One look of any sort makes it a
// part, also one that found nothing, and one that failed makes it an error.
func TestUntouchedParts(t *testing.T) {
	now, err := memstore.New().Snapshot(t.Context())
	must(t, err)
	grant := capabilities.Grant{Claim: capabilities.Effective{OpenWorld: true}, Outbox: []string{"example.com"}}
	for name, touch := range map[string]func(*kv.Overlay, *outbox.Box) error{
		"": func(*kv.Overlay, *outbox.Box) error { return nil },
		"keys": func(o *kv.Overlay, _ *outbox.Box) error {
			_, _, err := o.Get(t.Context(), "k")
			return err
		},
		"keys of a range": func(o *kv.Overlay, _ *outbox.Box) error {
			_, err := o.Scan(t.Context(), "a", "z", 10)
			return err
		},
		"outbox": func(_ *kv.Overlay, b *outbox.Box) error {
			return b.Send(t.Context(), outbox.Message{Host: "example.com", Method: "POST", Path: "/", Key: "k", Body: []byte("b")})
		},
	} {
		for _, s := range []store.Snapshot{now, mute{}} {
			o := kv.NewOverlay(kv.Stored(s, store.Space{}), kv.Options{})
			b := outbox.New(outbox.Stored(s, store.Space{}), outbox.Options{
				Ledger: capabilities.NewLedger(grant, capabilities.Notify{}), Bytes: 1 << 10, Quota: store.Usage{Keys: 10, Bytes: 1 << 20},
			})
			failed := touch(o, b)
			if want := name != "" && s != now; errors.Is(failed, errMute) != want || failed != nil && !want {
				t.Fatalf("%q: %v", name, failed)
			}
			p, err := Begin(Parts{Others: []Participant{Keys(o), Outbox(b)}}, volume.Options{}).Prepare(t.Context())
			part, _, _ := strings.Cut(name, " ")
			switch {
			case failed != nil:
				if !errors.Is(err, errMute) {
					t.Errorf("%q: %v", name, err)
				}
			case err != nil:
				t.Errorf("%q: %v", name, err)
			case name == "" && len(p.Others) > 0, name != "" && (len(p.Others) != 1 || p.Others[part] == nil):
				t.Errorf("%q: parts %v", name, p.Others)
			}
		}
	}
}
