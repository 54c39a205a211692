package main

import (
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
)

func TestNothingIsTriedNatively(t *testing.T) {
	r := guesttest.Call(t, "read_parent", `{}`)
	if !r.IsError || !strings.Contains(r.Text, "ENOSYS") {
		t.Errorf("got %+v", r)
	}
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
