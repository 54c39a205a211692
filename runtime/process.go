package runtime

import (
	crand "crypto/rand"
	"io"
	mrand "math/rand/v2"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/runtime/wasi"
)

// Scratch is what a call may hold in /tmp.
const (
	scratchMount = "/tmp"
	scratchBytes = 16 << 20
	scratchFiles = 1000
)

// callClock is the time that one call sees. Its monotonic part starts at zero:
// a guest learns nothing about the host's uptime.
type callClock struct {
	start time.Time
	ahead time.Duration // of the host's clock
}

func newCallClock() callClock { return callClock{start: time.Now()} }

// later returns a clock that is ahead by d more.
func (c callClock) later(d time.Duration) callClock {
	c.ahead += d
	return c
}

func (c callClock) now() time.Time           { return time.Now().Add(c.ahead) }
func (c callClock) monotonic() time.Duration { return time.Since(c.start) }

// newRandom returns a stream of random bytes for one call (ChaCha8, seeded by
// the system).
func newRandom() io.Reader {
	var seed [32]byte
	crand.Read(seed[:]) // never fails (crypto/rand.Read)
	return mrand.NewChaCha8(seed)
}

// sealed returns the process that start-up code sees: the same descriptors in
// the same order as in a call, none of which can be used. l judges the rest.
func (p *Package) sealed(stderr io.Writer, l *capabilities.Ledger) *wasi.Process {
	clock := newCallClock()
	var mounts []*files.Volume
	for _, r := range p.source.Manifest.Requests.Volumes {
		mounts = append(mounts, files.Sealed(r.Name, r.Path))
	}
	mounts = append(mounts, files.Sealed("", scratchMount))
	return wasi.NewProcess(wasi.Options{
		Args:      []string{p.name},
		Env:       p.env,
		Stderr:    stderr,
		Volumes:   mounts,
		Random:    newRandom(),
		Now:       clock.now,
		Monotonic: clock.monotonic,
		Ledger:    l,
	})
}

// newScratch returns the call's own /tmp.
func newScratch(clock callClock, l *capabilities.Ledger) (*files.Volume, *volume.Overlay) {
	o := volume.New(nil, volume.Options{
		Budget: &volume.Budget{Bytes: scratchBytes, Files: scratchFiles},
		Now:    clock.now,
	})
	return files.Scratch(scratchMount, o, l), o
}
