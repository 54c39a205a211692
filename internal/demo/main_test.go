package demo

import (
	"fmt"
	"os"
	"testing"
)

// SharedCache is where the tests keep what they built.
var SharedCache string

func TestMain(m *testing.M) { os.Exit(withCache(m)) }

func withCache(m *testing.M) int {
	dir, err := os.MkdirTemp("", "demo-cache-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	SharedCache = dir
	return m.Run()
}
