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
	"github.com/sandboxd/sandboxd/tool"
)

// Scratch is what a call may hold in /tmp.
const (
	scratchMount = "/tmp"
	scratchBytes = 16 << 20
	scratchFiles = 1000
)

// randomStream is a stream of random bytes for one call (ChaCha8). It is seeded by
// the system when it is first read: many calls draw nothing.
type randomStream struct{ source *mrand.ChaCha8 }

func newRandom() io.Reader { return &randomStream{} }

// Read fills b. It has no errors.
func (r *randomStream) Read(b []byte) (int, error) {
	if r.source == nil {
		var seed [32]byte
		crand.Read(seed[:]) // never fails (crypto/rand.Read)
		r.source = mrand.NewChaCha8(seed)
	}
	return r.source.Read(b)
}

// sealed returns the process that start-up code sees: the same descriptors in
// the same order as in a call, of which only the package's own files can be used. l
// judges the rest.
func (p *Package) sealed(o wasi.Options, l *capabilities.Ledger) *wasi.Process {
	var mounts []*files.Volume
	for _, r := range p.source.Manifest.Requests.Volumes {
		mounts = append(mounts, files.Sealed(r.Name, r.Path))
	}
	if p.files != nil {
		mounts = append(mounts, newFixed(p.files, l))
	}
	mounts = append(mounts, files.Sealed("", scratchMount))
	o.Args, o.Env, o.Volumes, o.Ledger = p.args, p.env, mounts, l
	return wasi.NewProcess(o)
}

// newFixed returns the package's own files.
func newFixed(b volume.Base, l *capabilities.Ledger) *files.Volume {
	return files.Fixed(tool.FilesPath, volume.New(b, volume.Options{}), l)
}

// newScratch returns the call's own /tmp.
func newScratch(now func() time.Time) *volume.Overlay {
	return volume.New(nil, volume.Options{
		Budget: &volume.Budget{Bytes: scratchBytes, Files: scratchFiles},
		Now:    now,
	})
}
