package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/memstore"
)

var (
	errBroken = errors.New("broken")
	open      = capabilities.Grant{Claim: capabilities.Effective{OpenWorld: true}, Outbox: []string{"h.example", "other.example"}}
	call      = Sender{Principal: "local", Package: "orders", Tool: "ship", Arguments: []byte(`{"id":1}`), CallID: "call-1"}
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// roomy are options that refuse nothing a test does.
func roomy(g capabilities.Grant) Options {
	return Options{
		Sender: call, Ledger: capabilities.NewLedger(g, capabilities.Notify{}), Now: noon,
		Bytes: 1 << 30, Quota: store.Usage{Keys: 1 << 20, Bytes: 1 << 30},
	}
}

func begin(t testing.TB, s store.Store, o Options) *Box {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	must(t, err)
	return New(Stored(snap, o.Sender.Space()), o)
}

func message(key string) Message {
	return Message{Host: "h.example", Method: "POST", Path: "/v1?x=1", ContentType: "text/plain; charset=utf-8", Body: []byte("hi"), Key: key}
}

func commit(t testing.TB, s store.Store, b *Box) error {
	t.Helper()
	c, err := b.Change()
	must(t, err)
	raw, err := json.Marshal(c) // a change may be kept in between
	must(t, err)
	var again Change
	must(t, json.Unmarshal(raw, &again))
	commits++
	_, err = s.Commit(t.Context(), &store.Commit{ID: fmt.Sprint(commits), Guards: again.Guards, Writes: again.Writes})
	return err
}

var commits int

// What was sent is pending once the call was committed, and nothing before.
func TestSend(t *testing.T) {
	s := memstore.New()
	b := begin(t, s, roomy(open))
	body := []byte("hi")
	m := message("k1")
	m.Body = body
	must(t, b.Send(t.Context(), m))
	copy(body, "no")
	must(t, b.Send(t.Context(), message("k1")))
	must(t, b.Send(t.Context(), Message{Host: "other.example", Method: "PUT", Path: "/", Key: "k1"}))
	if list, err := List(t.Context(), s, 9); len(list) != 0 || err != nil {
		t.Errorf("before: %v, %v", list, err)
	}
	must(t, commit(t, s, b))
	list, err := List(t.Context(), s, 9)
	must(t, err)
	if len(list) != 2 {
		t.Fatalf("got %+v", list)
	}
	want := Record{Message: message("k1"), Bytes: 2, CallID: "call-1", Tool: "ship", State: StatePending, Created: noon(), Next: noon()}
	if fmt.Sprint(list[0].Record) != fmt.Sprint(want) || list[0].Space != call.Space() || list[0].Version == 0 {
		t.Errorf("got  %+v\nwant %+v", list[0].Record, want)
	}
	effects := []capabilities.Effect{
		{Verb: capabilities.Send, Kind: capabilities.KindOutbox, Object: "h.example/v1?x=1", Bytes: 2, Detail: "k1"},
		{Verb: capabilities.Send, Kind: capabilities.KindOutbox, Object: "other.example/", Detail: "k1"},
	}
	if got := b.Effects(); !slices.Equal(got, effects) {
		t.Errorf("got %+v", got)
	}
}

// Two calls that send the same at once: one of them is run again, and then sends
// nothing.
func TestSameKeyAtOnce(t *testing.T) {
	s := memstore.New()
	a, b := begin(t, s, roomy(open)), begin(t, s, roomy(open))
	must(t, a.Send(t.Context(), message("k")))
	must(t, b.Send(t.Context(), message("k")))
	must(t, commit(t, s, a))
	if err := commit(t, s, b); !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v", err)
	}
	b = begin(t, s, roomy(open))
	must(t, b.Send(t.Context(), message("k")))
	if c, err := b.Change(); err != nil || !c.Empty() || len(c.Guards) != 0 || len(b.Effects()) != 0 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// The keys that the host makes depend on what the call is asked, not on which
// call it is.
func TestMadeKeys(t *testing.T) {
	keys := func(change func(*Sender)) []string {
		o := roomy(open)
		change(&o.Sender)
		b := begin(t, memstore.New(), o)
		for range 2 {
			must(t, b.Send(t.Context(), message("")))
		}
		var list []string
		for _, r := range b.sent {
			list = append(list, r.Message.Key)
		}
		return list
	}
	first := keys(func(*Sender) {})
	if len(first) != 2 || first[0] == first[1] {
		t.Fatalf("got %q", first)
	}
	for name, c := range map[string]struct {
		change func(*Sender)
		same   bool
	}{
		"another call":      {func(s *Sender) { s.CallID = "call-2" }, true},
		"spaces":            {func(s *Sender) { s.Arguments = []byte(" {\"id\" : 1} ") }, true},
		"another tool":      {func(s *Sender) { s.Tool = "x" }, false},
		"another package":   {func(s *Sender) { s.Package = "x" }, false},
		"another principal": {func(s *Sender) { s.Principal = "x" }, false},
		"other arguments":   {func(s *Sender) { s.Arguments = []byte(`{"id":2}`) }, false},
		"other precision":   {func(s *Sender) { s.Arguments = []byte(`{"id":1.0}`) }, false},
		"fields run over":   {func(s *Sender) { s.Principal, s.Package = "localorders", "" }, false},
	} {
		if got := keys(c.change); slices.Equal(got, first) != c.same || !c.same && got[0] == first[0] {
			t.Errorf("%s: %q and %q", name, got, first)
		}
	}
	if a, b := (Sender{Arguments: []byte(`{"b":1,"a":2}`)}), (Sender{Arguments: []byte(`{"a":2,"b":1}`)}); a.key(1) != b.key(1) {
		t.Error("the order of keys matters")
	}
}

// The second run of a call sends nothing further.
func TestShadow(t *testing.T) {
	s := memstore.New()
	first := begin(t, s, roomy(open))
	must(t, first.Send(t.Context(), message("")))
	must(t, first.Send(t.Context(), message("own")))
	l := capabilities.NewLedger(open, capabilities.Notify{})
	second := first.Shadow(l, noon)
	must(t, second.Send(t.Context(), message("")))
	must(t, second.Send(t.Context(), message("own")))
	if got := second.Effects(); len(got) != 0 {
		t.Errorf("sent %+v", got)
	}
	must(t, second.Send(t.Context(), message("")))
	if got := second.Effects(); len(got) != 1 {
		t.Errorf("sent %+v", got)
	}
}

func TestLaw(t *testing.T) {
	for name, c := range map[string]struct {
		grant capabilities.Grant
		host  string
		want  error
		hint  capabilities.Hint
	}{
		"granted":      {open, "h.example", nil, 0},
		"another host": {open, "x.example", capabilities.EACCES, 0},
		"another port": {open, "h.example:8443", capabilities.EACCES, 0},
		"closed":       {capabilities.Grant{Outbox: open.Outbox}, "h.example", capabilities.ErrViolation, capabilities.OpenWorldHint},
		"read-only": {
			capabilities.Grant{Claim: capabilities.Effective{ReadOnly: true, OpenWorld: true}, Outbox: open.Outbox},
			"h.example", capabilities.ErrViolation, capabilities.ReadOnlyHint,
		},
		"closed, in report": {capabilities.Grant{Mode: capabilities.Report, Outbox: open.Outbox}, "h.example", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := begin(t, memstore.New(), roomy(c.grant))
			m := message("k")
			m.Host = c.host
			err := b.Send(t.Context(), m)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if v, ok := errors.AsType[*capabilities.Violation](err); ok && (v.Hint != c.hint || v.Operation != capabilities.OpSend || v.Object != c.host) {
				t.Errorf("got %+v", v)
			}
			if sent := len(b.Effects()) > 0; sent != (err == nil) {
				t.Errorf("sent %v", b.Effects())
			}
		})
	}
	if _, ok := errors.AsType[*SealedError](Sealed().Send(t.Context(), message("k"))); !ok {
		t.Error("a sealed box sends")
	}
	if err := New(begin(t, memstore.New(), roomy(open)).base, Options{}).Send(t.Context(), message("k")); !errors.Is(err, capabilities.ErrViolation) {
		t.Errorf("zero options: %v", err)
	}
}

func TestMessagesChecked(t *testing.T) {
	valid := message("k")
	for name, change := range map[string]func(*Message){
		"no host":               func(m *Message) { m.Host = "" },
		"upper case":            func(m *Message) { m.Host = "H.example" },
		"user in the host":      func(m *Message) { m.Host = "a@h.example" },
		"path in the host":      func(m *Message) { m.Host = "h.example/x" },
		"NUL in the host":       func(m *Message) { m.Host = "h.example\x00" },
		"long host":             func(m *Message) { m.Host = strings.Repeat("h", maxHost+1) },
		"no method":             func(m *Message) { m.Method = "" },
		"another method":        func(m *Message) { m.Method = "GET" },
		"no path":               func(m *Message) { m.Path = "" },
		"a path of another":     func(m *Message) { m.Path = "x" },
		"line in the path":      func(m *Message) { m.Path = "/\r\nX: y" },
		"fragment":              func(m *Message) { m.Path = "/#x" },
		"backslash":             func(m *Message) { m.Path = `/\x` },
		"long path":             func(m *Message) { m.Path = "/" + strings.Repeat("x", maxPath) },
		"line in the type":      func(m *Message) { m.ContentType = "a/b\nX: y" },
		"space before the type": func(m *Message) { m.ContentType = " a/b" },
		"space in the key":      func(m *Message) { m.Key = "a b" },
		"no ASCII in the key":   func(m *Message) { m.Key = "é" },
		"long key":              func(m *Message) { m.Key = strings.Repeat("k", MaxKey+1) },
	} {
		b := begin(t, memstore.New(), roomy(open))
		m := valid
		change(&m)
		if err := b.Send(t.Context(), m); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
		if len(b.opts.Ledger.Denials())+len(b.Effects()) != 0 {
			t.Errorf("%s: judged", name)
		}
	}
	b := begin(t, memstore.New(), roomy(open))
	valid.Body = make([]byte, MaxBody+1)
	if err := b.Send(t.Context(), valid); !errors.Is(err, capabilities.EFBIG) {
		t.Errorf("long body: %v", err)
	}
	valid.Body, valid.Key, valid.Path = valid.Body[1:], strings.Repeat("k", MaxKey), "/"+strings.Repeat("x", maxPath-1)
	must(t, b.Send(t.Context(), valid))
	if e := b.Effects()[0]; len(e.Object) > maxShown+len("…") {
		t.Errorf("shown as %d bytes", len(e.Object))
	}
}

func TestBounds(t *testing.T) {
	b := begin(t, memstore.New(), roomy(open))
	for i := range MaxMessages {
		must(t, b.Send(t.Context(), message(fmt.Sprint("k", i%60))))
	}
	if err := b.Send(t.Context(), message("more")); !errors.Is(err, ErrTooMany) || len(b.Effects()) != 60 {
		t.Errorf("got %v after %d", err, len(b.Effects()))
	}
	o := roomy(open)
	o.Bytes = 100
	b = begin(t, memstore.New(), o)
	must(t, b.Send(t.Context(), message("a")))
	if _, ok := errors.AsType[*LimitError](b.Send(t.Context(), message(strings.Repeat("k", 60)))); !ok {
		t.Error("the budget holds nothing back")
	}
}

// A space without room is no reason to end the call. What it holds is asked once.
func TestQuota(t *testing.T) {
	s, o := memstore.New(), roomy(open)
	b := begin(t, s, o)
	must(t, b.Send(t.Context(), message("a")))
	must(t, commit(t, s, b))
	held, err := s.Usage(t.Context(), call.Space())
	must(t, err)
	if after, err := b.Usage(t.Context()); after != held || err != nil {
		t.Errorf("the box counts %+v, %v, the store %+v", after, err, held)
	}
	asked := 0
	o.Quota = store.Usage{Keys: 2 * held.Keys, Bytes: 2 * held.Bytes}
	o.Held = meter(func(context.Context) (store.Usage, error) { asked++; return held, nil })
	b = begin(t, s, o)
	must(t, b.Send(t.Context(), message("a")))
	must(t, b.Send(t.Context(), message("b")))
	if err := b.Send(t.Context(), message("c")); !errors.Is(err, capabilities.ENOSPC) || asked != 1 {
		t.Errorf("got %v, asked %d times", err, asked)
	}
	if d := o.Ledger.Denials(); len(d) != 1 || d[0].Capability != capabilities.CapOutbox {
		t.Errorf("denied %v", d)
	}
	o.Held = meter(func(context.Context) (store.Usage, error) { return held, errBroken })
	b = begin(t, s, o)
	if err := b.Send(t.Context(), message("x")); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Change(); !errors.Is(err, errBroken) {
		t.Errorf("change: %v", err)
	}
}

type broken struct{}

func (broken) Known(context.Context, string, string) (bool, error) { return false, errBroken }

func TestBrokenBase(t *testing.T) {
	b := New(broken{}, roomy(open))
	if err := b.Send(t.Context(), message("k")); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if c, err := b.Change(); !errors.Is(err, errBroken) || c != nil {
		t.Errorf("change %v, %v", c, err)
	}
}

// Principals and packages have nothing in common.
func TestSpaces(t *testing.T) {
	s := memstore.New()
	for _, p := range []string{"bob", "ann"} {
		o := roomy(open)
		o.Sender.Principal = p
		b := begin(t, s, o)
		must(t, b.Send(t.Context(), message("k")))
		must(t, commit(t, s, b))
	}
	_, err := s.Commit(t.Context(), &store.Commit{ID: "kv", Writes: []store.Write{{Key: store.Key{Space: store.Space{Area: "kv"}, Name: "k"}}}})
	must(t, err)
	for limit, want := range map[int]int{0: 0, 1: 1, 2: 2, 9: 2} {
		items, err := List(t.Context(), s, limit)
		must(t, err)
		who := map[string]bool{}
		for _, i := range items {
			who[i.Space.Principal] = true
		}
		if len(items) != want || len(who) != want || want == 1 && items[0].Space.Principal != "ann" {
			t.Errorf("limit %d: %v", limit, slices.Collect(maps.Keys(who)))
		}
	}
}

// meter tells what one space takes.
type meter func(context.Context) (store.Usage, error)

func (m meter) Usage(ctx context.Context, _ store.Space) (store.Usage, error) { return m(ctx) }
