//go:build !wasip1

package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests"
	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
)

// portable are the cases that a guest can re-create and an engine can judge by
// operations, by what a call leaves, by a second run or by conflicts.
const portable = "R01 R03 R06 R07 R11 R13 R14 R15 R16 R23 R24 R25 R26 R29 D02 D03 D05 D06 D07 D10 D15 D18 " +
	"F01 F02 F03 F04 F05 F11 F12 I01 I02 I03 I06 I07 I08 I14 I15 I17"

func load(t *testing.T) *guests.Corpus {
	t.Helper()
	c, err := guests.ReadCorpus()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// described returns the declared hints of each registered tool.
func described(t *testing.T) map[string]map[string]bool {
	t.Helper()
	var list struct {
		Tools []struct {
			Name        string
			Annotations map[string]bool
		}
	}
	if err := json.Unmarshal(sdk.Describe(), &list); err != nil {
		t.Fatal(err)
	}
	tools := map[string]map[string]bool{}
	for _, d := range list.Tools {
		tools[d.Name] = d.Annotations
	}
	return tools
}

func TestDataFile(t *testing.T) {
	c, tools := load(t), described(t)
	ids, names, called := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, x := range c.Cases {
		ids[x.ID] = true
		if names[x.Name()] || x.ID == "" || x.Source == "" {
			t.Errorf("%s: twice, or without source", x.Name())
		}
		names[x.Name()] = true
		if hints, ok := tools[x.Tool]; !ok || !maps.Equal(hints, x.Declared) {
			t.Errorf("%s: tool %s declares %v, the case says %v", x.Name(), x.Tool, hints, x.Declared)
		}
		for _, call := range slices.Concat([]guests.CorpusCall{{Tool: x.Tool, Arguments: x.Arguments}}, x.Before, x.During) {
			called[call.Tool] = true
			if tools[call.Tool] == nil || !json.Valid(call.Arguments) {
				t.Errorf("%s: call %s %s", x.Name(), call.Tool, call.Arguments)
			}
		}
		checkExpected(t, x)
	}
	for _, o := range c.Omitted {
		if ids[o.ID] || o.Reason == "" {
			t.Errorf("%s: omitted and there, or without reason", o.ID)
		}
	}
	for id := range strings.FieldsSeq(portable) {
		if !ids[id] {
			t.Errorf("%s: no case", id)
		}
	}
	for name := range tools {
		if !called[name] {
			t.Errorf("%s: in no case", name)
		}
	}
}

// checkExpected holds what a case expects against itself.
func checkExpected(t *testing.T, c guests.CorpusCase) {
	t.Helper()
	if (c.Violation != nil) != (c.Outcome == "violation") || !slices.Contains([]string{"ok", "violation", "tool_error"}, c.Outcome) {
		t.Errorf("%s: outcome %q, violation %v", c.Name(), c.Outcome, c.Violation)
	}
	if n := len(c.Left) + len(c.LeftKeys) + c.Sent; c.Outcome != "ok" && n > 0 {
		t.Errorf("%s: ends in %s and leaves something", c.Name(), c.Outcome)
	}
	if !slices.IsSorted(c.Left) || !slices.IsSorted(c.LeftKeys) {
		t.Errorf("%s: what is left is not sorted", c.Name())
	}
	v := c.Violation
	if v == nil {
		return
	}
	want := map[string]string{"readOnlyHint": "operation", "destructiveHint": "commit", "idempotentHint": "replay"}[v.Hint]
	if v.Phase != want || (want != "operation" && v.Operation != want) {
		t.Errorf("%s: violation %+v", c.Name(), *v)
	}
	effective := map[string]bool{"destructiveHint": true} // the defaults of MCP
	maps.Copy(effective, c.Declared)
	if effective["readOnlyHint"] != (v.Hint == "readOnlyHint") || v.Hint == "destructiveHint" && effective[v.Hint] || v.Hint == "idempotentHint" && !effective[v.Hint] {
		t.Errorf("%s: breaks %s, declares %v", c.Name(), v.Hint, c.Declared)
	}
}

// transient are the tools whose trace is gone when they end: files that they
// remove or rename, bytes that are the same.
var transient = map[string]bool{"git_status": true, "query_wal": true, "search_rag_rewrite": true}

// Natively nothing is judged, so each case does what the engine should let
// through or stop: honest ones leave what they should, the others leave more.
func TestCases(t *testing.T) {
	for _, c := range load(t).Cases {
		if len(c.During) > 0 || len(c.OptionalWrites) > 0 {
			continue // nothing comes between, and nothing is refused
		}
		t.Run(c.Name(), func(t *testing.T) {
			root, scratch, thoughts = t.TempDir(), t.TempDir(), 0
			if err := guests.Seed("corpus", c.Seed, root); err != nil {
				t.Fatal(err)
			}
			kv.Reset()
			outbox.Reset()
			for _, call := range c.Before {
				guesttest.Text(t, call.Tool, string(call.Arguments))
			}
			thoughts = 0
			before, sent := state(t), len(outbox.Sent())
			r := guesttest.Call(t, c.Tool, string(c.Arguments))
			after := state(t)
			left := differ(before, after)
			if r.IsError != (c.Outcome == "tool_error") {
				t.Errorf("answered %q, error %t", r.Text, r.IsError)
			}
			switch {
			case c.Violation == nil:
				if want := append(slices.Clone(c.Left), c.LeftKeys...); !slices.Equal(left, want) || len(outbox.Sent())-sent != c.Sent {
					t.Errorf("left %q, want %q; sent %d", left, want, len(outbox.Sent())-sent)
				}
				if c.Text != "" && r.Text != c.Text {
					t.Errorf("answered %q, want %q", r.Text, c.Text)
				}
				again(t, c, after)
			case c.Violation.Phase == "replay":
				sent = len(outbox.Sent())
				guesttest.Call(t, c.Tool, string(c.Arguments))
				if len(differ(after, state(t))) == 0 && len(outbox.Sent()) == sent {
					t.Error("a second call changes nothing further")
				}
			case !transient[c.Tool] && !slices.ContainsFunc(left, func(p string) bool { return guests.Within(c.Violation.Object, p) }):
				t.Errorf("left %q, and not %s", left, c.Violation.Object)
			}
			for file, texts := range c.Holds {
				for _, s := range texts {
					if b := after[file]; !strings.Contains(b, s) {
						t.Errorf("%s: %q, want %q in it", file, b, s)
					}
				}
			}
		})
	}
}

// again holds honest tools that claim to be idempotent to it, but for what is
// approved to change.
func again(t *testing.T, c guests.CorpusCase, after map[string]string) {
	t.Helper()
	if !c.Declared["idempotentHint"] || c.Approved || c.Outcome != "ok" || c.Sent > 0 {
		return
	}
	guesttest.Call(t, c.Tool, string(c.Arguments))
	if left := differ(after, state(t)); len(left) > 0 {
		t.Errorf("a second call changed %q", left)
	}
}

// state returns all files by guest path, and all keys.
func state(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		text := []byte("a folder")
		if !d.IsDir() {
			text, err = os.ReadFile(name)
		}
		all["/data/"+filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := kv.Scan("", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		all[k.Key] = fmt.Sprintf("%q", k.Value)
	}
	return all
}

func differ(before, after map[string]string) []string {
	names := slices.Collect(maps.Keys(after))
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(n string) bool {
		old, was := before[n]
		text, is := after[n]
		return was == is && old == text
	})
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
