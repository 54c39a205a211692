package courier

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
)

// Two processes on a store on the disk deliver each message once, while a third
// one goes on to send.
func TestOnDisk(t *testing.T) {
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "sent.jsonl")
	open := func() *sqlite.Store {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Folder: folder})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	sender := open()
	l := &told{}
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 2 {
		o := l.options(open(), map[string]Sink{"h": NewFileSink(file)})
		o.Poll = 10 * time.Millisecond
		c := New(o)
		wg.Go(func() { c.Run(ctx) })
	}
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("k%02d", i))
		post(t, sender, "h", want[i])
	}
	for pending := true; pending; {
		list, err := outbox.List(t.Context(), sender, len(want))
		must(t, err)
		pending = slices.ContainsFunc(list, func(i outbox.Item) bool { return i.State == outbox.StatePending })
	}
	stop()
	wg.Wait()
	raw, err := os.ReadFile(file)
	must(t, err)
	var got []string
	for l := range bytes.SplitSeq(bytes.TrimSpace(raw), []byte("\n")) {
		if len(l) > 0 {
			got = append(got, line(t, l).Key)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(l.faults) != 0 {
		t.Errorf("delivered %q, faults %v", got, l.faults)
	}
	if k := journal(t, sender); len(k) != len(want) || slices.ContainsFunc(k, func(k Kind) bool { return k != Delivered }) {
		t.Errorf("recorded %v", k)
	}
	if u, err := sender.Usage(t.Context(), store.Space{Principal: "local", Package: "p", Area: store.AreaOutbox}); err != nil || u.Keys != int64(len(want)) {
		t.Errorf("left %+v, %v", u, err)
	}
}
