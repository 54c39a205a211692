//go:build !wasip1

package sdk

import (
	"slices"
	"strings"
	"testing"
)

func TestNotes(t *testing.T) {
	c := &Call{Tool: "t"}
	c.Progress(1, 2, "half")
	c.Log("info", "a\xffb")
	c.Log("debug", strings.Repeat("x", maxNote-1)+"é")
	want := []Note{
		{Progress: 1, Total: 2, Message: "half"},
		{Level: "info", Text: "a\uFFFDb"},
		{Level: "debug", Text: strings.Repeat("x", maxNote-1)},
	}
	if got := c.Notes(); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}
