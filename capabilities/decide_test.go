package capabilities

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

var operations = []Operation{
	OpRead, OpWrite, OpTruncate, OpCreate, OpMkdir, OpRmdir, OpUnlink, OpRename, OpSetSize, OpSetTimes,
	OpPut, OpDelete, OpAppend, OpIncrement, OpSend, OpHTTP, OpSQL, OpSocket, OpCommit, OpReplay,
}

// classes are the effective claims that differ in what a tool may do.
var classes = []struct {
	name  string
	claim Effective
}{
	{"read-only closed", Effective{ReadOnly: true, Idempotent: true}},
	{"read-only open", Effective{ReadOnly: true, Idempotent: true, OpenWorld: true}},
	{"additive closed", Effective{}},
	{"additive open", Effective{OpenWorld: true}},
	{"idempotent closed", Effective{Destructive: true, Idempotent: true}},
	{"idempotent open", Effective{Destructive: true, Idempotent: true, OpenWorld: true}},
	{"any closed", Effective{Destructive: true}},
	{"any open", Effective{Destructive: true, OpenWorld: true}},
}

var kinds = []struct {
	name string
	set  func(*Attempt)
}{
	{"plain", func(*Attempt) {}},
	{"tentative", func(a *Attempt) { a.Tentative = true }},
	{"link", func(a *Attempt) { a.Link = true }},
	{"escape", func(a *Attempt) { a.Escape = true }},
}

func (v Verdict) cell() string {
	switch v.Decision {
	case Violate:
		return "violate " + v.Hint.String()
	case Deny:
		return fmt.Sprintf("deny %s %s", v.Capability, v.Errno)
	case Allow:
	}
	return v.Decision.String()
}

// TestDecideGolden pins the decision on every operation under every class of
// claim, every access and every kind of attempt.
func TestDecideGolden(t *testing.T) {
	var w bytes.Buffer
	for _, c := range classes {
		for _, access := range []Access{NoAccess, ReadAccess, WriteAccess} {
			p := Policy{Volumes: []VolumeGrant{{Name: "data", Path: "/data", Access: access}}}
			g := Derive(c.claim, p)
			fmt.Fprintf(&w, "%s, requests %s, holds %s\n", c.name, access, g.Volume("data"))
			for _, op := range operations {
				fmt.Fprintf(&w, "\t%-10s", op)
				for _, k := range kinds {
					a := Attempt{Operation: op, Object: "/data/a", Volume: "data"}
					k.set(&a)
					fmt.Fprintf(&w, "  %s: %-24s", k.name, g.Decide(a).cell())
				}
				w.Truncate(len(bytes.TrimRight(w.Bytes(), " ")))
				w.WriteByte('\n')
			}
		}
	}
	golden(t, "decide.golden", w.Bytes())
}

func TestDecideUnknown(t *testing.T) {
	g := Derive(Effective{Destructive: true, OpenWorld: true}, Policy{Volumes: []VolumeGrant{{Name: "data", Path: "/data", Access: WriteAccess}}})
	for _, op := range []Operation{"", "chmod", "WRITE"} {
		if v := g.Decide(Attempt{Operation: op, Volume: "data", Object: "/data/a"}); v.Decision != Deny {
			t.Errorf("%q: %+v", op, v)
		}
	}
	if v := (Grant{}).Decide(Attempt{Operation: OpRead}); v.Decision != Deny {
		t.Errorf("the zero grant: %+v", v)
	}
	if v := g.Decide(Attempt{Operation: OpWrite, Volume: "other", Object: "/other/a"}); v.Decision != Deny || v.Capability != CapVolume {
		t.Errorf("another volume: %+v", v)
	}
	reader := Derive(Effective{ReadOnly: true}, Policy{Volumes: []VolumeGrant{{Name: "data", Path: "/data"}}, OptionalWrites: []string{"*"}})
	for _, volume := range []string{"data", "other", ""} {
		v := reader.Decide(Attempt{Operation: OpMkdir, Volume: volume, Object: "/data/a"})
		if v != denied(CapVolume, EACCES) {
			t.Errorf("a read-only tool in volume %q, which it does not hold: %+v", volume, v)
		}
	}
	if (Verdict{}).Decision != Deny {
		t.Error("the zero verdict does not deny")
	}
	for d, want := range map[Decision]string{Deny: "deny", Violate: "violate", Allow: "allow", 3: "decision(3)"} {
		if d.String() != want {
			t.Errorf("%v", d)
		}
	}
}

// TestDecideProperties checks the rules that hold for every grant and attempt.
func TestDecideProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := rapid.SampledFrom(classes).Draw(rt, "class").claim
		access := rapid.SampledFrom([]Access{NoAccess, ReadAccess, WriteAccess}).Draw(rt, "access")
		g := Derive(e, Policy{
			Volumes:        []VolumeGrant{{Name: "data", Path: "/data", Access: access}},
			OptionalWrites: rapid.SampledFrom([][]string{nil, {".git/index"}, {"*"}}).Draw(rt, "optional"),
		})
		a := Attempt{
			Operation: rapid.SampledFrom(operations).Draw(rt, "operation"),
			Object:    rapid.SampledFrom([]string{"/data/a", "/data/.git/index", "/other", ""}).Draw(rt, "object"),
			Volume:    rapid.SampledFrom([]string{"data", "other", ""}).Draw(rt, "volume"),
			Tentative: rapid.Bool().Draw(rt, "tentative"), Escape: rapid.Bool().Draw(rt, "escape"), Link: rapid.Bool().Draw(rt, "link"),
		}
		v := g.Decide(a)
		switch {
		case v != g.Decide(a):
			rt.Fatal("decides twice in two ways")
		case v.Decision == Allow && (a.Link || a.Escape || a.Volume != "data" || access == NoAccess):
			rt.Fatalf("allowed: %+v", a)
		case v.Decision == Allow && a.Operation != OpRead && (e.ReadOnly || access != WriteAccess):
			rt.Fatalf("a write is allowed: %+v", a)
		case v.Decision == Allow && g.Decide(Attempt{Operation: OpRead, Object: a.Object, Volume: a.Volume}).Decision != Allow:
			rt.Fatalf("allowed where looking is not: %+v", a)
		case v.Decision == Violate && v.Hint == ReadOnlyHint && !e.ReadOnly:
			rt.Fatalf("breaks a claim that is not made: %+v", a)
		case v.Decision == Violate && v.Hint == OpenWorldHint && e.OpenWorld:
			rt.Fatalf("breaks a claim that is not made: %+v", a)
		case v.Decision == Violate && (a.Operation == OpRead || a.Link || a.Escape):
			rt.Fatalf("a violation: %+v", a)
		case v.Decision == Deny && (v.Capability == "" || v.Errno == ""):
			rt.Fatalf("a denial without reason: %+v", v)
		}
	})
}

// TestDecideKeysAndOutbox: who holds which keys, and for whom messages are taken.
func TestDecideKeysAndOutbox(t *testing.T) {
	p := Policy{KV: true, Outbox: []string{"hooks.example.com"}}
	reader, closed, open := Derive(Effective{ReadOnly: true}, p), Derive(Effective{}, p), Derive(Effective{OpenWorld: true}, p)
	get, put := Attempt{Operation: OpRead, Keys: true}, Attempt{Operation: OpPut, Keys: true}
	send, elsewhere := Attempt{Operation: OpSend, Object: "hooks.example.com"}, Attempt{Operation: OpSend, Object: "example.com"}
	for _, c := range []struct {
		grant Grant
		a     Attempt
		want  Verdict
	}{
		{reader, get, Verdict{Decision: Allow}},
		{reader, put, Verdict{Decision: Violate, Hint: ReadOnlyHint}},
		{reader, send, Verdict{Decision: Violate, Hint: ReadOnlyHint}},
		{closed, get, Verdict{Decision: Allow}},
		{closed, put, Verdict{Decision: Allow}},
		{closed, send, Verdict{Decision: Violate, Hint: OpenWorldHint}},
		{open, send, Verdict{Decision: Allow}},
		{open, elsewhere, denied(CapOutbox, EACCES)},
		{Derive(Effective{OpenWorld: true}, Policy{}), get, denied(CapKV, EACCES)},
		{Derive(Effective{OpenWorld: true}, Policy{}), put, denied(CapKV, EACCES)},
	} {
		if got := c.grant.Decide(c.a); got != c.want {
			t.Errorf("%+v under %+v: %+v, want %+v", c.a, c.grant, got, c.want)
		}
	}
}
