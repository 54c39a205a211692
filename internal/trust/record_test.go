package trust

import (
	"bytes"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

// FuzzDecode: a record's file is refused, or is what encode writes.
func FuzzDecode(f *testing.F) {
	for _, c := range []Candidate{notes(f), notes(f, func(m *tool.Manifest) {
		m.Tools[0].Description = "\u202e <&> \x1b"
		m.Tools[0].ClientCapabilities = tool.ClientCapabilities()
		m.Tools[0].InputSchema = []byte(`{"type":"object","enum":[1e300,0.10,"\u202e\u2028\ud83d\ude00"]}`)
		m.Requests, m.Relaxations, m.Labels = tool.Requests{}, tool.Relaxations{}, nil
	})} {
		r, err := newRecord(c)
		if err != nil {
			f.Fatal(err)
		}
		r = r.stamp(ByApprove, r.requested(), day)
		b, err := r.encode()
		if err != nil {
			f.Fatal(err)
		}
		if _, err := decode(b); err != nil {
			f.Fatalf("%v\n%s", err, b)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"format":"sandboxd.trust/1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decode(b)
		if err != nil {
			if r.Format != "" || r.Tools != nil {
				t.Errorf("error %v and record %+v", err, r)
			}
			return
		}
		again, err := r.encode()
		if err != nil || !bytes.Equal(b, again) {
			t.Errorf("%q reads as %q, %v", b, again, err)
		}
		if r.check() != nil {
			t.Errorf("accepted %q", b)
		}
	})
}

// TestReadBack: what was recorded agrees with the package it is of, also where
// its texts are escaped in the file.
func TestReadBack(t *testing.T) {
	s := open(t)
	c := notes(t, func(m *tool.Manifest) {
		m.Tools[0].Description = "\u202e <&> \x1b"
		m.Tools[0].InputSchema = []byte(`{"type":"object", "b": [1e300, 0.10], "a": "\u202e` + "\u202e\u00ad" + `"}`)
	})
	admit(t, s, c)
	if _, written, err := s.Admit(c, Options{}); err != nil || written {
		t.Errorf("written %t, error %v", written, err)
	}
	if b := records(t, s)["notes.json"]; bytes.ContainsAny([]byte(b), "\u202e\u00ad\x1b") {
		t.Errorf("the file is not escaped: %q", b)
	}
}

// TestDecodeClientCapabilities: a record names what the protocol names.
func TestDecodeClientCapabilities(t *testing.T) {
	for name, ok := range map[string]bool{tool.ClientRoots: true, "tasks": false} {
		r, err := newRecord(notes(t, func(m *tool.Manifest) { m.Tools[0].ClientCapabilities = []string{name} }))
		if err != nil {
			t.Fatal(err)
		}
		r = r.stamp(ByApprove, r.requested(), day)
		b, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(b); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
