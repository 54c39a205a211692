package main

import (
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/guests/internal/guesttest"
)

func TestOffline(t *testing.T) {
	r := guesttest.Call(t, "get_weather", `{"city":"Oslo","offline":true}`)
	if want := `{"city":"Oslo","celsius":18,"source":"climate mean"}`; r.IsError || string(r.Structured) != want {
		t.Errorf("got %+v, want %s", r, want)
	}
	if r := guesttest.Call(t, "get_weather", `{"city":"Atlantis","offline":true}`); !r.IsError {
		t.Errorf("got %+v, want an error", r)
	}
}

func TestOnlineSaysThatNoNetworkIsGranted(t *testing.T) {
	r := guesttest.Call(t, "get_weather", `{"city":"Oslo"}`)
	if !r.IsError || !strings.Contains(r.Text, "no network is granted") {
		t.Errorf("got %+v", r)
	}
}

func TestManifest(t *testing.T) { guesttest.Manifest(t) }
