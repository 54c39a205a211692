package wasi

import (
	"context"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

const direntSize = 24

// fdReaddir writes the names of a directory from a cookie on, as many as fit;
// the last one is cut off where the buffer ends, by which the guest knows that
// there are more. Cookie 0 looks at the directory anew; the others count in
// what was seen then, and one beyond its end finds nothing.
//
//	0        8        16       20     24
//	 +--------+--------+--------+------+----------
//	 | next   | inode  | length | type | name ...
//	 +--------+--------+--------+------+----------
//	  u64      u64      u32      u8
func fdReaddir(_ context.Context, p *Process, m memory, a []uint64) errno {
	d, e := p.get(a[0], rightReaddir)
	switch {
	case e != success:
		return e
	case d.file == nil:
		return eNOTDIR
	}
	buf, ok := m.bytes(low(a[1]), low(a[2]))
	if !ok {
		return eFAULT
	}
	used, ok := m.bytes(low(a[4]), 4)
	if !ok {
		return eFAULT
	}
	cookie := a[3]
	if cookie == 0 || d.entries == nil {
		list, err := d.file.ReadDir()
		if err != nil {
			return p.result(err)
		}
		d.entries = list
	}
	n := 0
	for i := min(cookie, uint64(len(d.entries))); i < uint64(len(d.entries)) && n < len(buf); i++ {
		n += writeDirent(buf[n:], i+1, d.entries[i])
	}
	le.PutUint32(used, uint32(n))
	return success
}

// writeDirent writes one entry, cut off at the end of b.
func writeDirent(b []byte, next uint64, e volume.Entry) int {
	var head [direntSize]byte
	le.PutUint64(head[:], next)
	le.PutUint64(head[8:], e.Inode)
	le.PutUint32(head[16:], uint32(len(e.Name)))
	head[20] = filetype(e.Kind)
	n := copy(b, head[:])
	return n + copy(b[n:], e.Name)
}
