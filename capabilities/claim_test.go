package capabilities

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// claims returns the 81 combinations of declared hints.
func claims() []Claim {
	var list []Claim
	tris := []Tri{Unset, False, True}
	for _, r := range tris {
		for _, d := range tris {
			for _, i := range tris {
				for _, o := range tris {
					list = append(list, Claim{ReadOnly: r, Destructive: d, Idempotent: i, OpenWorld: o})
				}
			}
		}
	}
	return list
}

// letters writes effective hints as RDIO, a dash for each that is false.
func (e Effective) letters() string {
	b := []byte("----")
	for i, v := range []bool{e.ReadOnly, e.Destructive, e.Idempotent, e.OpenWorld} {
		if v {
			b[i] = "RDIO"[i]
		}
	}
	return string(b)
}

// TestClaimsGolden pins what each combination of declared hints comes to.
func TestClaimsGolden(t *testing.T) {
	var w bytes.Buffer
	fmt.Fprintf(&w, "%-8s%-12s%-11s%-10s  %-9s %-14s %-15s %s\n", "readOnly", " destructive", " idempotent", " openWorld",
		"effective", "contradictory", "listed (no judge)", "listed (both)")
	for _, c := range claims() {
		e := c.Effective()
		fmt.Fprintf(&w, "%-8s %-11s %-10s %-9s  %-9s %-14v %-17s %s\n", c.ReadOnly, c.Destructive, c.Idempotent, c.OpenWorld,
			e.letters(), c.Contradictory(), e.Listed(Judges{}).letters(), e.Listed(Judges{Additive: true, Replay: true}).letters())
	}
	golden(t, "claims.golden", w.Bytes())
}

// TestListedIsNeverSafer checks, for each claim and each set of judges, that
// what is listed is no safer than what is enforced, and that hints without a
// judge are listed at their pessimistic value.
func TestListedIsNeverSafer(t *testing.T) {
	for _, c := range claims() {
		e := c.Effective()
		for i := range 4 {
			j := Judges{Additive: i&1 != 0, Replay: i&2 != 0}
			l := e.Listed(j)
			switch {
			case l.ReadOnly != e.ReadOnly || l.OpenWorld != e.OpenWorld:
				t.Errorf("%+v %+v: read-only or open world changed: %+v", c, j, l)
			case e.Destructive && !l.Destructive || !e.Idempotent && l.Idempotent:
				t.Errorf("%+v %+v: listed safer than claimed: %+v", c, j, l)
			case !e.ReadOnly && !j.Additive && !l.Destructive:
				t.Errorf("%+v %+v: additive without a judge: %+v", c, j, l)
			case !e.ReadOnly && !j.Replay && l.Idempotent:
				t.Errorf("%+v %+v: idempotent without a judge: %+v", c, j, l)
			}
		}
	}
}

func TestEffectiveDefaults(t *testing.T) {
	if got, want := (Claim{}).Effective(), (Effective{Destructive: true, OpenWorld: true}); got != want {
		t.Errorf("the empty claim is %+v, want %+v", got, want)
	}
	if got := (Claim{ReadOnly: True, Destructive: True}).Effective(); !got.ReadOnly || got.Destructive {
		t.Errorf("read-only and destructive is %+v", got)
	}
}

func TestTri(t *testing.T) {
	for _, tt := range []struct {
		tri       Tri
		text      string
		or, orNot bool
		json      string
	}{
		{Unset, "unset", true, false, "null"},
		{False, "false", false, false, "false"},
		{True, "true", true, true, "true"},
	} {
		b, err := json.Marshal(tt.tri)
		if err != nil || string(b) != tt.json {
			t.Errorf("%v: JSON %s, %v", tt.tri, b, err)
		}
		back := True
		if err := json.Unmarshal(b, &back); err != nil || back != tt.tri {
			t.Errorf("%s: %v, %v", b, back, err)
		}
		if tt.tri.String() != tt.text || tt.tri.Or(true) != tt.or || tt.tri.Or(false) != tt.orNot {
			t.Errorf("%v: %v %v", tt.tri, tt.tri.Or(true), tt.tri.Or(false))
		}
	}
	for _, b := range []bool{false, true} {
		if TriOf(b).Or(!b) != b {
			t.Errorf("TriOf(%v)", b)
		}
	}
	if _, err := json.Marshal(Tri(3)); err == nil || Tri(3).String() != "tri(3)" {
		t.Errorf("a tri out of range is written: %v", err)
	}
	for _, s := range []string{`"true"`, `1`, `0`, `[]`, `{}`, `"unset"`, ``} {
		v := False
		if err := v.UnmarshalJSON([]byte(s)); err == nil || v != False {
			t.Errorf("%q is read as %v", s, v)
		}
	}
}

func TestTriOrPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a tri out of range has a value")
		}
	}()
	Tri(9).Or(true)
}

func TestClaimJSON(t *testing.T) {
	for _, c := range claims() {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Claim
		if err := json.Unmarshal(b, &back); err != nil || back != c {
			t.Errorf("%s: %+v, %v", b, back, err)
		}
	}
	var c Claim
	if err := json.Unmarshal([]byte(`{"readOnlyHint":true}`), &c); err != nil || c != (Claim{ReadOnly: True}) {
		t.Errorf("absent hints: %+v, %v", c, err)
	}
}

func TestHints(t *testing.T) {
	want := []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
	var got []string
	for h := range Hints() {
		b, err := h.MarshalText()
		var back Hint
		if err != nil || back.UnmarshalText(b) != nil || back != h {
			t.Errorf("%v: %s, %v", h, b, err)
		}
		got = append(got, h.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("hints %v", got)
	}
	for range Hints() {
		break // a loop over hints may end early
	}
	h := OpenWorldHint
	for _, s := range []string{"", "readonlyhint", "read_only_hint", "readOnly", "hint(4)"} {
		if err := h.UnmarshalText([]byte(s)); err == nil || h != OpenWorldHint {
			t.Errorf("%q is read as %v", s, h)
		}
	}
	for h, text := range map[Hint]string{0: "hint(0)", OpenWorldHint + 1: "hint(5)"} {
		if _, err := h.MarshalText(); err == nil || h.String() != text {
			t.Errorf("hint %d is written", h)
		}
	}
}
