package wasi

import "context"

// fdPrestatGet tells the length of the path at which a volume's root was
// opened before the guest started; EBADF ends the enumeration.
//
//	ptr             ptr+4      ptr+8
//	 +---------------+----------+
//	 | 0: directory  |  length  |
//	 +---------------+----------+
//	  u8              u32
func fdPrestatGet(_ context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], 0)
	switch {
	case e != success:
		return e
	case d.preopen == "":
		return eBADF
	}
	out, ok := m.bytes(low(a[1]), 8)
	if !ok {
		return eFAULT
	}
	clear(out)
	le.PutUint32(out[4:], uint32(len(d.preopen)))
	return success
}

// fdPrestatDirName writes that path; ENAMETOOLONG when it does not fit.
func fdPrestatDirName(_ context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], 0)
	switch {
	case e != success:
		return e
	case d.preopen == "":
		return eBADF
	case low(a[2]) < uint64(len(d.preopen)):
		return eNAMETOOLONG
	}
	out, ok := m.bytes(low(a[1]), uint64(len(d.preopen)))
	if !ok {
		return eFAULT
	}
	copy(out, d.preopen)
	return success
}
