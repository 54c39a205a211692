package tx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/kv"
	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/internal/enough"
)

// deed is one thing that a guest does, as data.
type deed struct {
	What     string
	Vol      string
	Path, To string
	Data     string
	At       int64
}

func genDeeds() *rapid.Generator[[]deed] {
	path := rapid.SampledFrom([]string{"a", "b", "d", "d/a", "d/b", "e", "e/a", "d/e", "d/e/c", "."})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deed {
		return deed{
			What: rapid.SampledFrom([]string{
				"write", "write", "append", "mkdir", "remove", "rename", "times", "list", "read", "truncate",
				"put", "delete", "get", "scan", "increment", "send",
			}).Draw(t, "what"),
			Vol: rapid.SampledFrom([]string{"m", "f"}).Draw(t, "volume"), Path: path.Draw(t, "path"), To: path.Draw(t, "to"),
			Data: rapid.SampledFrom([]string{"", "1", "22", "a longer one"}).Draw(t, "data"),
			At:   rapid.Int64Range(0, 2e18).Draw(t, "at"),
		}
	}), 0, 12)
}

// guest does what a call may do, and says what it saw.
type guest struct {
	tx   *Tx
	keys *kv.Overlay
	box  *outbox.Box
	ctx  context.Context
}

// do returns what a guest sees of one deed.
func (g *guest) do(d deed) string {
	switch d.What {
	case "put":
		return fmt.Sprint(g.keys.Put(g.ctx, d.Path, []byte(d.Data)))
	case "delete":
		return fmt.Sprint(g.keys.Delete(g.ctx, d.Path))
	case "get":
		value, ok, err := g.keys.Get(g.ctx, d.Path)
		return fmt.Sprintf("%q %v %v", value, ok, err)
	case "increment":
		n, err := g.keys.Increment(g.ctx, d.Path, 3)
		return fmt.Sprint(n, err)
	case "scan":
		return g.scan()
	case "send":
		return fmt.Sprint(g.box.Send(g.ctx, outbox.Message{Host: "example.org", Method: "POST", Path: "/", Key: d.Path}))
	}
	o := g.tx.Overlay(d.Vol)
	p, err := o.Walk(o.Root(), d.Path, true)
	if err != nil {
		return err.Error()
	}
	switch d.What {
	case "mkdir":
		return fmt.Sprint(o.Mkdir(p))
	case "remove":
		return fmt.Sprint(o.Remove(p))
	case "rename":
		to, err := o.Walk(o.Root(), d.To, false)
		if err == nil {
			err = o.Rename(p, to)
		}
		return fmt.Sprint(err)
	}
	n := p.Node
	if n == nil && (d.What == "write" || d.What == "append") {
		if n, err = o.Create(p); err != nil {
			return err.Error()
		}
	}
	if n == nil {
		return "absent"
	}
	return g.file(o, n, d)
}

func (g *guest) file(o *volume.Overlay, n *volume.Node, d deed) string {
	info, err := o.Info(n)
	if err != nil {
		return err.Error()
	}
	switch d.What {
	case "write":
		_, err = o.WriteAt(n, []byte(d.Data), 0)
	case "append":
		_, err = o.WriteAt(n, []byte(d.Data), info.Size)
	case "truncate":
		err = o.Truncate(n, int64(len(d.Data)))
	case "times":
		err = o.SetTimes(n, time.Unix(0, d.At))
	case "list":
		list, lerr := o.List(n)
		return fmt.Sprint(list, lerr)
	case "read":
		data := make([]byte, info.Size)
		_, err = o.ReadAt(n, data, 0)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return fmt.Sprintf("%q %v", data, err)
	}
	return fmt.Sprint(err)
}

func (g *guest) scan() string {
	list, err := g.keys.Scan(g.ctx, "", "", 100)
	text := fmt.Sprint(err)
	for _, e := range list {
		text += fmt.Sprintf(" %s=%q", e.Key, e.Value)
	}
	return text
}

// all returns all that a guest can see.
func (g *guest) all() []string {
	seen := []string{g.scan()}
	for _, vol := range []string{"m", "f"} {
		o := g.tx.Overlay(vol)
		var walk func(path string)
		walk = func(path string) {
			p, err := o.Walk(o.Root(), path, false)
			if err != nil {
				seen = append(seen, err.Error())
				return
			}
			info, err := o.Info(p.Node)
			seen = append(seen, fmt.Sprintf("%s %s: %v %d %v %d %d %v", vol, path, info.Kind, info.Size, info.Mode, info.ModTime.UnixNano(), info.Inode, err))
			if info.Kind != volume.Dir {
				seen = append(seen, g.do(deed{What: "read", Vol: vol, Path: path}))
				return
			}
			list, err := o.List(p.Node)
			seen = append(seen, fmt.Sprint(list, err))
			for _, e := range list {
				walk(path + "/" + e.Name)
			}
		}
		walk(".")
	}
	return seen
}

// clock counts steps that are no whole ones of any file system.
func clock() func() time.Time {
	now := time.Unix(1.8e9, 987654321)
	return func() time.Time { now = now.Add(1234567891); return now }
}

// guestOf returns a guest of a new call, by a clock of its own.
func (p *site) guestOf(t *rapid.T) *guest {
	parts, now, err := p.parts(t.Context())
	must(t, err)
	keys := kv.NewOverlay(kv.Stored(now, keySpace), keyOptions())
	sender := outbox.Sender{Principal: someone, Package: notes, Tool: "t"}
	box := outbox.New(outbox.Stored(now, sender.Space()), boxOptions(sender))
	parts.Others = []Participant{Keys(keys), Outbox(box)}
	o := ample()
	o.Now = clock()
	return &guest{Begin(parts, o), keys, box, t.Context()}
}

// TestShadow: a guest that runs on what a call would leave, and then on what is
// there once it was committed, sees the same, whatever it does.
func TestShadow(t *testing.T) {
	onEach(t, func(t *testing.T, s store.Store) {
		changed, n := 0, 0
		enough.Check(t, func(rt *rapid.T) {
			n++
			id := fmt.Sprint("shadow ", n)
			p := siteAt(t, s, quick(t))
			before, first, second := p.guestOf(rt), genDeeds().Draw(rt, "first"), genDeeds().Draw(rt, "second")
			for _, d := range genDeeds().Draw(rt, "before") {
				before.do(d)
			}
			must(rt, (&run{Tx: before.tx}).commit(rt.Context(), named(id+" before")))
			call := p.guestOf(rt)
			for _, d := range first {
				call.do(d)
			}
			o := ample()
			o.Now = clock()
			keys := kv.NewOverlay(call.keys.Result(), keyOptions())
			box := call.box.Shadow(boxOptions(outbox.Sender{}).Ledger, clock())
			shadow := &guest{call.tx.Shadow([]Participant{Keys(keys), Outbox(box)}, o), keys, box, rt.Context()}
			would := shadow.all()
			for _, d := range second {
				would = append(would, d.What+" "+shadow.do(d))
			}
			would = append(would, shadow.all()...)
			prepared, err := shadow.tx.Prepare(rt.Context())
			must(rt, err)
			if err := shadow.tx.Commit(rt.Context(), prepared, named(id+" shadow")); err == nil {
				rt.Fatal("a shadow was committed")
			}
			left, err := call.tx.Prepare(rt.Context())
			must(rt, err)
			if !left.Empty() {
				changed++
			}
			must(rt, call.tx.Commit(rt.Context(), left, named(id)))
			committed := p.guestOf(rt)
			is := committed.all()
			for _, d := range second {
				is = append(is, d.What+" "+committed.do(d))
			}
			is = append(is, committed.all()...)
			for i := range min(len(is), len(would)) {
				if is[i] != would[i] {
					rt.Fatalf("shadow    %s\ncommitted %s", would[i], is[i])
				}
			}
			if len(is) != len(would) {
				rt.Fatalf("shadow %q\ncommitted %q", would, is)
			}
			must(rt, committed.tx.Rollback())
		}, func() string {
			if changed < 10 {
				return fmt.Sprintf("%d changes", changed)
			}
			return ""
		})
	})
}

// What a base can tell, its shadow can tell.
func TestShadowOffersAll(t *testing.T) {
	var s Tree = shadow{}
	if _, ok := s.(volume.Shadow); !ok {
		t.Error("a shadow offers less than the base that it stands for")
	}
}
