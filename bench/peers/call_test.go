package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"path/filepath"
	"testing"

	"github.com/sandboxd/sandboxd/runtime"
)

var interpreters = flag.String("interpreters", "", "folder that guests/interpreters.sh fills; without it scripts are left out")

// BenchmarkCall is what a profile of a call on a fresh state is taken from.
func BenchmarkCall(b *testing.B) {
	root, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	l := &lab{log: io.Discard, root: root, short: true, scripts: *interpreters}
	if err := l.makeWork(b.TempDir()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.close(); err != nil {
			b.Error(err)
		}
	})
	box, err := l.openSandbox(b.Context(), runtime.StrategyImage)
	if err != nil {
		b.Fatal(err)
	}
	data := l.path("data")
	works := []work{
		{"echo", json.RawMessage(`{"text":"` + hello + `"}`), hello},
		{"read_text_file", json.RawMessage(`{"path":"/data/` + fileName + `"}`), fileText},
	}
	for _, g := range l.guests() {
		for _, w := range works {
			b.Run(g.name+"/"+w.tool, func(b *testing.B) { benchCall(b, l, box, g, w, data) })
		}
	}
}

func benchCall(b *testing.B, l *lab, box *sandbox, g guest, w work, data string) {
	s, err := l.guestSubject(b.Context(), box, g, w, data)
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Call(context.Background(), 0, 0); err != nil {
			b.Fatal(err)
		}
	}
}
