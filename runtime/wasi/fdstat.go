package wasi

import (
	"context"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// The file types (preview 1, filetype).
const (
	typeUnknown   = 0
	typeCharacter = 2
	typeDirectory = 3
	typeRegular   = 4
	typeLink      = 7
)

const (
	fdstatSize = 24
	allFlags   = 1<<5 - 1 // append, dsync, nonblock, rsync, sync
)

func filetype(k volume.Kind) byte {
	switch k {
	case volume.File:
		return typeRegular
	case volume.Dir:
		return typeDirectory
	case volume.Symlink:
		return typeLink
	case volume.Special:
		return typeUnknown
	}
	return typeUnknown
}

// fdFdstatGet describes a descriptor, also one of a volume that is sealed:
//
//	ptr                 ptr+8              ptr+16             ptr+24
//	 +------+---+-------+------------------+------------------+
//	 | type | - | flags |      rights      |    inheriting    |
//	 +------+---+-------+------------------+------------------+
//	  u8         u16     u64                u64
//
// The rights are those that the descriptor has in fact. Streams are character
// devices that cannot seek, by which languages know them.
func fdFdstatGet(_ context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], 0)
	if e != success {
		return e
	}
	out, ok := m.bytes(low(a[1]), fdstatSize)
	if !ok {
		return eFAULT
	}
	clear(out)
	out[0] = typeCharacter
	if d.file != nil {
		out[0] = filetype(d.file.Kind())
	}
	base, inheriting := d.rights()
	le.PutUint16(out[2:], d.flags)
	le.PutUint64(out[8:], uint64(base))
	le.PutUint64(out[16:], uint64(inheriting))
	return success
}

// fdFdstatSetFlags sets the flags. All but append say nothing here: nothing
// blocks for long, and what is written is as durable as the call.
func fdFdstatSetFlags(_ context.Context, p *Process, _ memory, a []uint64) errno {
	d, e := p.own("fd_fdstat_set_flags", a[0], rightSetFlags)
	switch {
	case e != success:
		return e
	case low(a[1])&^allFlags != 0:
		return eINVAL
	}
	d.flags = uint16(a[1])
	return success
}

// fdFdstatSetRights gives rights up; they cannot be taken back.
func fdFdstatSetRights(_ context.Context, p *Process, _ memory, a []uint64) errno {
	d, e := p.own("fd_fdstat_set_rights", a[0], 0)
	if e != success {
		return e
	}
	base, inheriting := d.rights()
	if rights(a[1])&^base != 0 || rights(a[2])&^inheriting != 0 {
		return eNOTCAPABLE
	}
	d.dropped |= base &^ rights(a[1])
	d.uninherit |= inheriting &^ rights(a[2])
	return success
}
