package wasi

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

const direntSize = 24

// What is kept of listings, so that a cookie can count in what was seen: a guest
// can have a thousand directories open, and the memory is the host's.
const (
	maxListings = 8
	maxListed   = 1 << 18 // entries of all together, unless it is the only one

	checkEvery = 1 << 12 // entries between two looks at the context
)

// listing is a directory as fd_readdir saw it last. When the entries were
// dropped the directory is looked at again, and the guest goes on behind the
// name that it had come to.
type listing struct {
	entries []volume.Entry // nil: not looked at, or dropped
	skew    int            // cookie of an entry less its index
	cookie  uint64         // behind the last whole entry that was written
	after   string         // the name of that entry
}

// set takes the entries of the directory as they are now: ".", "..", and the
// others sorted.
func (l *listing) set(entries []volume.Entry, cookie uint64) {
	if cookie == 0 {
		*l = listing{entries: entries}
		return
	}
	l.entries, l.skew = entries, 0
	switch l.after {
	case "":
	case ".", "..":
		l.skew = int(l.cookie) - len(l.after)
	default:
		i, found := slices.BinarySearchFunc(entries[2:], l.after, func(e volume.Entry, name string) int {
			return strings.Compare(e.Name, name)
		})
		if found {
			i++
		}
		l.skew = int(l.cookie) - (2 + i)
	}
}

// index returns where in the entries a cookie leads.
func (l *listing) index(cookie uint64) int {
	if cookie > math.MaxInt32 {
		return len(l.entries)
	}
	return min(max(int(cookie)-l.skew, 0), len(l.entries))
}

// list returns the listing of a directory for a cookie.
func (p *Process) list(d *descriptor, cookie uint64) (*listing, error) {
	l := &d.listing
	if cookie == 0 || l.entries == nil {
		entries, err := d.file.ReadDir()
		if err != nil {
			return nil, err
		}
		l.set(entries, cookie)
	}
	p.keep(l)
	return l, nil
}

// keep makes a listing the latest one and drops those that are too many.
func (p *Process) keep(l *listing) {
	p.listings = slices.DeleteFunc(p.listings, func(k *listing) bool { return k == l || k.entries == nil })
	p.listings = append(p.listings, l)
	total := 0
	for _, k := range p.listings {
		total += len(k.entries)
	}
	for len(p.listings) > 1 && (len(p.listings) > maxListings || total > maxListed) {
		total -= len(p.listings[0].entries)
		p.listings[0].entries = nil
		p.listings = slices.Delete(p.listings, 0, 1)
	}
}

// fdReaddir writes the names of a directory from a cookie on, as many as fit;
// the last one is cut off where the buffer ends, by which the guest knows that
// there are more. Cookie 0 looks at the directory anew; the others count in
// what was seen then, and one beyond its end finds nothing. A guest that reads
// more than eight directories at a time may see changes in between, and each
// name that stays once.
//
//	0        8        16       20     24
//	 +--------+--------+--------+------+----------
//	 | next   | inode  | length | type | name ...
//	 +--------+--------+--------+------+----------
//	  u64      u64      u32      u8
func fdReaddir(ctx context.Context, p *Process, m memory, a []uint64) errno {
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
	l, err := p.list(d, a[3])
	if err != nil {
		return p.result(err)
	}
	le.PutUint32(used, uint32(p.writeDirents(ctx, buf, l, l.index(a[3]))))
	return success
}

// writeDirents writes the entries from index i on and returns how many bytes
// that are.
func (p *Process) writeDirents(ctx context.Context, buf []byte, l *listing, i int) int {
	n, whole := 0, i
	for ; i < len(l.entries) && n < len(buf); i++ {
		if i%checkEvery == 0 {
			p.check(ctx)
		}
		e := l.entries[i]
		k := writeDirent(buf[n:], uint64(i+l.skew+1), e)
		if n += k; k == direntSize+len(e.Name) {
			whole = i + 1
		}
	}
	if whole > 0 {
		l.cookie, l.after = uint64(whole+l.skew), l.entries[whole-1].Name
	}
	return n
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
