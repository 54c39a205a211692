package volume

import "testing"

// What the tests of commits to several volumes need of this package.
var (
	Plant      = plant
	Image      = image
	SameImage  = sameImage
	Lively     = lively
	LivelyEnd  = livelyAfter
	QuickDir   = quickDir
	EqualImage = equal
	Every      = every
)

// LivelyCall does something of every sort.
func LivelyCall(t testing.TB, o *Overlay) { livelyCall(t, &guest{o}) }

// SetFault makes operations on the host's file system fail.
func (h *HostDir) SetFault(fault func(op, name string) error) { h.disk.fault = fault }
