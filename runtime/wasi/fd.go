package wasi

import (
	"context"
	"math"
)

// fdClose frees the descriptor, of a volume's root too: the table is the
// call's own.
func fdClose(_ context.Context, p *Process, _ memory, a []uint64) errno {
	d, e := p.own("fd_close", a[0], 0)
	if e != success {
		return e
	}
	p.table.remove(a[0])
	return p.result(d.close())
}

// fdRenumber moves a descriptor to another open number, which is closed.
func fdRenumber(_ context.Context, p *Process, _ memory, a []uint64) errno {
	from, e := p.own("fd_renumber", a[0], 0)
	if e != success {
		return e
	}
	to, e := p.own("fd_renumber", a[1], 0)
	switch {
	case e != success:
		return e
	case from == to:
		return success
	}
	p.table.slots[low(a[1])] = from
	p.table.remove(a[0])
	return p.result(to.close())
}

// fdSync succeeds: what a call writes becomes durable when it commits.
func fdSync(_ context.Context, p *Process, _ memory, a []uint64) errno {
	return p.sync(a[0], rightSync)
}

func fdDatasync(_ context.Context, p *Process, _ memory, a []uint64) errno {
	return p.sync(a[0], rightDatasync)
}

func (p *Process) sync(fd uint64, need rights) errno {
	h, e := p.file(fd, need, eINVAL)
	if e != success {
		return e
	}
	return p.result(h.Sync())
}

// fdAdvise takes advice on files and does nothing with it.
func fdAdvise(_ context.Context, p *Process, _ memory, a []uint64) errno {
	const last = 5 // noreuse
	d, e := p.own("fd_advise", a[0], rightAdvise)
	switch {
	case e != success:
		return e
	case d.file == nil:
		return eSPIPE
	case d.dir():
		return eBADF
	case a[1] > math.MaxInt64 || a[2] > math.MaxInt64 || low(a[3]) > last:
		return eINVAL
	}
	return success
}

func fdAllocate(_ context.Context, p *Process, _ memory, a []uint64) errno {
	h, e := p.file(a[0], rightAllocate, eBADF)
	if e != success {
		return e
	}
	return p.result(h.Allocate(int64(a[1]), int64(a[2])))
}

// fdSeek moves the offset of a file and writes the new one, a u64 in bytes.
func fdSeek(_ context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.own("fd_seek", a[0], rightSeek)
	if e != success {
		return e
	}
	return p.seek(d, m, int64(a[1]), low(a[2]), a[3])
}

func fdTell(_ context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.own("fd_tell", a[0], rightTell)
	if e != success {
		return e
	}
	return p.seek(d, m, 0, seekCurrent, a[1])
}

// Where an offset counts from (preview 1, whence).
const (
	seekStart   = 0
	seekCurrent = 1
	seekEnd     = 2
)

func (p *Process) seek(d *descriptor, m memory, by int64, whence, out uint64) errno {
	result, ok := m.bytes(low(out), 8)
	switch {
	case !ok:
		return eFAULT
	case d.file == nil:
		return eSPIPE
	case d.dir():
		return eISDIR
	}
	var base int64
	switch whence {
	case seekStart:
	case seekCurrent:
		base = d.offset
	case seekEnd:
		i, err := d.file.Stat()
		if err != nil {
			return p.result(err)
		}
		base = i.Size
	default:
		return eINVAL
	}
	if by > math.MaxInt64-base || base+by < 0 {
		return eINVAL
	}
	d.offset = base + by
	le.PutUint64(result, uint64(d.offset))
	return success
}
