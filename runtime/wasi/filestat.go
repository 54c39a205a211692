package wasi

import (
	"context"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/files"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

const filestatSize = 64

// fdFilestatGet describes an open file, see [writeFilestat]. Streams are
// character devices of size 0.
func fdFilestatGet(_ context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], rightFilestatGet)
	if e != success {
		return e
	}
	out, ok := m.bytes(low(a[1]), filestatSize)
	if !ok {
		return eFAULT
	}
	if d.file == nil {
		clear(out)
		out[16] = typeCharacter
		return success
	}
	i, err := d.file.Stat()
	if err != nil {
		return p.result(err)
	}
	writeFilestat(out, p.device(d.file.Volume()), i)
	return success
}

// pathFilestatGet describes the file at a path, see [writeFilestat].
func pathFilestatGet(_ context.Context, p *Process, m memory, a []uint64) errno {
	h, e := p.file(a[0], rightPathFilestatGet, eNOTDIR)
	if e != success {
		return e
	}
	follow, e := lookup(a[1])
	if e != success {
		return e
	}
	path, e := m.path(a[2], a[3])
	if e != success {
		return e
	}
	out, ok := m.bytes(low(a[4]), filestatSize)
	if !ok {
		return eFAULT
	}
	i, err := h.StatPath(path, follow)
	if err != nil {
		return p.result(err)
	}
	writeFilestat(out, p.device(h.Volume()), i)
	return success
}

// writeFilestat writes the description of a file:
//
//	0        8        16     24       32       40       48       56       64
//	 +--------+--------+------+--------+--------+--------+--------+--------+
//	 | device | inode  | type | links  | size   | access | modify | change |
//	 +--------+--------+------+--------+--------+--------+--------+--------+
//	  u64      u64      u8     u64      u64      u64 nanoseconds since 1970
//
// One time stands for all three: access times are not kept.
func writeFilestat(out []byte, device uint64, i volume.Info) {
	clear(out)
	t := uint64(i.ModTime.UnixNano())
	le.PutUint64(out, device)
	le.PutUint64(out[8:], i.Inode)
	out[16] = filetype(i.Kind)
	le.PutUint64(out[24:], 1)
	le.PutUint64(out[32:], uint64(i.Size))
	le.PutUint64(out[40:], t)
	le.PutUint64(out[48:], t)
	le.PutUint64(out[56:], t)
}

func fdFilestatSetSize(_ context.Context, p *Process, _ memory, a []uint64) errno {
	h, e := p.file(a[0], rightSetSize, eINVAL)
	if e != success {
		return e
	}
	return p.result(h.SetSize(int64(a[1])))
}

func fdFilestatSetTimes(_ context.Context, p *Process, _ memory, a []uint64) errno {
	h, e := p.file(a[0], rightSetTimes, eINVAL)
	if e != success {
		return e
	}
	t, e := p.times(a[1], a[2], low(a[3]))
	if e != success {
		return e
	}
	return p.result(h.SetTimes(t))
}

func pathFilestatSetTimes(_ context.Context, p *Process, m memory, a []uint64) errno {
	h, e := p.file(a[0], rightPathSetTimes, eNOTDIR)
	if e != success {
		return e
	}
	follow, e := lookup(a[1])
	if e != success {
		return e
	}
	path, e := m.path(a[2], a[3])
	if e != success {
		return e
	}
	t, e := p.times(a[4], a[5], low(a[6]))
	if e != success {
		return e
	}
	return p.result(h.SetTimesPath(path, follow, t))
}

// What is set (preview 1, fstflags).
const (
	setAccess = 1 << iota
	setAccessNow
	setModify
	setModifyNow
)

// times returns the times that the flags say; a time both given and now is
// EINVAL.
func (p *Process) times(access, modify, flags uint64) (files.Times, errno) {
	if flags&^(setAccess|setAccessNow|setModify|setModifyNow) != 0 {
		return files.Times{}, eINVAL
	}
	var t files.Times
	var ok bool
	if t.Access, ok = p.pick(access, flags&setAccess != 0, flags&setAccessNow != 0); !ok {
		return files.Times{}, eINVAL
	}
	if t.Modify, ok = p.pick(modify, flags&setModify != 0, flags&setModifyNow != 0); !ok {
		return files.Times{}, eINVAL
	}
	return t, success
}

func (p *Process) pick(nanoseconds uint64, given, now bool) (time.Time, bool) {
	switch {
	case given && now:
		return time.Time{}, false
	case given:
		return time.Unix(0, int64(nanoseconds)), true
	case now:
		return p.clock.Now(), true
	}
	return time.Time{}, true
}

// lookup returns whether lookupflags say to follow a link in the last place.
func lookup(flags uint64) (follow bool, e errno) {
	if low(flags) > 1 {
		return false, eINVAL
	}
	return low(flags) == 1, success
}
