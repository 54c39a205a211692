package main

import (
	"testing"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
)

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
