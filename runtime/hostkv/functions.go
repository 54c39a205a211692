package hostkv

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"

	"github.com/sandboxd/sandboxd/capabilities/kv"
)

var le = binary.LittleEndian

// memory is the guest's linear memory. The zero memory has no byte in it.
type memory struct{ api.Memory }

// view returns n bytes of the memory, valid until the guest runs again.
func (m memory) view(ptr, n uint64) ([]byte, bool) {
	if m.Memory == nil {
		return nil, false
	}
	return m.Read(api.DecodeU32(ptr), api.DecodeU32(n))
}

// key copies a key out of the memory; of one that is too long, enough to tell.
func (m memory) key(ptr, n uint64) (string, bool) {
	b, ok := m.view(ptr, n)
	return string(b[:min(len(b), kv.MaxKey+2)]), ok
}

func get(ctx context.Context, k *kv.Keys, m memory, a []uint64) (errno, error) {
	key, ok := m.key(a[0], a[1])
	buf, okBuf := m.view(a[2], a[3])
	size, okSize := m.view(a[4], 4)
	if !ok || !okBuf || !okSize {
		return eFAULT, nil
	}
	value, found, err := k.Get(ctx, key)
	switch {
	case err != nil:
		return 0, err
	case !found:
		return eNOENT, nil
	}
	if len(value) > len(buf) {
		le.PutUint32(size, uint32(len(value)))
		return eRANGE, nil
	}
	copy(buf, value)
	le.PutUint32(size, uint32(len(value))) // last: it may lie in the rest of the buffer
	return success, nil
}

func put(ctx context.Context, k *kv.Keys, m memory, a []uint64) (errno, error) {
	return withData(m, a, func(key string, data []byte) error { return k.Put(ctx, key, data) })
}

func appendTo(ctx context.Context, k *kv.Keys, m memory, a []uint64) (errno, error) {
	return withData(m, a, func(key string, data []byte) error { return k.Append(ctx, key, data) })
}

// withData reads a key and data, which do must not keep.
func withData(m memory, a []uint64, do func(key string, data []byte) error) (errno, error) {
	key, ok := m.key(a[0], a[1])
	data, okData := m.view(a[2], a[3])
	if !ok || !okData {
		return eFAULT, nil
	}
	return success, do(key, data)
}

func remove(ctx context.Context, k *kv.Keys, m memory, a []uint64) (errno, error) {
	key, ok := m.key(a[0], a[1])
	if !ok {
		return eFAULT, nil
	}
	return success, k.Delete(ctx, key)
}

func increment(ctx context.Context, k *kv.Keys, m memory, a []uint64) (errno, error) {
	key, ok := m.key(a[0], a[1])
	result, okResult := m.view(a[3], 8)
	if !ok || !okResult {
		return eFAULT, nil
	}
	n, err := k.Increment(ctx, key, int64(a[2]))
	if err != nil {
		return 0, err
	}
	le.PutUint64(result, uint64(n))
	return success, nil
}

// scan writes entries to the buffer, as many as fit and the limit allows:
//
//	+-------------+-------------+-----+-------+ ...
//	| length of k | length of v |  k  |   v   |
//	+-------------+-------------+-----+-------+ ...
//	      u32           u32
//
// and then how many entries and bytes there are, and whether an entry did not
// fit.
func scan(ctx context.Context, k *kv.Keys, m memory, a []uint64) (errno, error) {
	from, ok := m.key(a[0], a[1])
	to, okTo := m.key(a[2], a[3])
	buf, okBuf := m.view(a[5], a[6])
	result, okResult := m.view(a[7], 12)
	if !ok || !okTo || !okBuf || !okResult {
		return eFAULT, nil
	}
	w := page{limit: api.DecodeU32(a[4]), buf: buf}
	if w.limit == 0 {
		if _, err := k.Scan(ctx, from, to, 0); err != nil {
			return 0, err
		}
	} else if err := k.Each(ctx, from, to, w.add); err != nil {
		return 0, err
	}
	answer := success
	if w.more == 1 && w.count == 0 {
		w.bytes, answer = w.need, eRANGE
	}
	le.PutUint32(result, w.count)
	le.PutUint32(result[4:], w.bytes)
	le.PutUint32(result[8:], w.more)
	return answer, nil
}

// page is the answer to a scan in the making.
type page struct {
	limit, count, bytes, more uint32
	need                      uint32 // for the entry that did not fit
	buf                       []byte
}

// add writes an entry and reports whether another one is wanted.
func (p *page) add(e kv.Entry) bool {
	b := p.buf[p.bytes:]
	p.need = uint32(8 + len(e.Key) + len(e.Value))
	if int(p.need) > len(b) {
		p.more = 1
		return false
	}
	le.PutUint32(b, uint32(len(e.Key)))
	le.PutUint32(b[4:], uint32(len(e.Value)))
	copy(b[8:], e.Key)
	copy(b[8+len(e.Key):], e.Value)
	p.count, p.bytes = p.count+1, p.bytes+p.need
	return p.count < p.limit
}
