package wasi

import (
	"context"
	"math"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/volume"
)

const (
	maxSubscriptions = 4096
	subscriptionSize = 48
	eventSize        = 32
)

// What is waited for (preview 1, eventtype).
const (
	eventClock   = 0
	eventFdRead  = 1
	eventFdWrite = 2
)

const clockAbsolute = 1 << 0 // subclockflags

// subscription is one thing that poll_oneoff waits for, and what came of it.
type subscription struct {
	userdata uint64
	kind     byte
	ready    bool
	errno    errno
	nbytes   uint64        // that can be read at once
	wait     time.Duration // of a clock that is not ready
}

// pollOneoff waits until one of n subscriptions is ready, or the call has no time
// left, which stops the guest, and writes an event for each that is. Files and
// streams are always ready.
//
//	in: 48 bytes each                          out: 32 bytes each
//	 0          8    16                         0          8       10    16
//	 +----------+----+----------------------+   +----------+-------+-----+--------+
//	 | userdata | tag| clock: id     u32 16 |   | userdata | errno | tag | nbytes |
//	 +----------+----+  timeout      u64 24 |   +----------+-------+-----+--------+
//	                 |  precision    u64 32 |    u64        u16     u8    u64
//	                 |  flags        u16 40 |
//	                 | fd: number    u32 16 |
//	                 +----------------------+
func pollOneoff(ctx context.Context, p *Process, m memory, a []uint64) errno {
	n := low(a[2])
	if n == 0 || n > maxSubscriptions {
		return eINVAL
	}
	in, ok := m.bytes(low(a[0]), n*subscriptionSize)
	if !ok {
		return eFAULT
	}
	out, ok := m.bytes(low(a[1]), n*eventSize)
	if !ok {
		return eFAULT
	}
	count, ok := m.bytes(low(a[3]), 4)
	if !ok {
		return eFAULT
	}
	// In and out may overlap: everything is read before anything is written.
	p.subscriptions = p.subscriptions[:0]
	for ; len(in) > 0; in = in[subscriptionSize:] {
		s, e := p.subscribe(in)
		if e != success {
			return e
		}
		p.subscriptions = append(p.subscriptions, s)
	}
	p.await(ctx, p.subscriptions)
	le.PutUint32(count, writeEvents(out, p.subscriptions))
	return success
}

// subscribe reads one subscription.
func (p *Process) subscribe(b []byte) (subscription, errno) {
	s := subscription{userdata: le.Uint64(b), kind: b[8]}
	switch s.kind {
	case eventClock:
		s.wait, s.errno = p.untilClock(b)
		s.ready = s.errno != success || s.wait <= 0
	case eventFdRead:
		s.ready = true
		s.nbytes, s.errno = p.readable(uint64(le.Uint32(b[16:])))
	case eventFdWrite:
		s.ready = true
		_, s.errno = p.own("poll_oneoff", uint64(le.Uint32(b[16:])), rightPoll)
	default:
		return s, eINVAL
	}
	return s, success
}

// untilClock returns how long a clock takes to reach its timeout.
func (p *Process) untilClock(b []byte) (time.Duration, errno) {
	now, ok := p.time(uint64(le.Uint32(b[16:])))
	timeout, flags := le.Uint64(b[24:]), le.Uint16(b[40:])
	switch {
	case !ok || flags&^clockAbsolute != 0:
		return 0, eINVAL
	case timeout > math.MaxInt64:
		return math.MaxInt64, success
	case flags&clockAbsolute == 0:
		return time.Duration(timeout), success
	case now < 0 && int64(timeout) > math.MaxInt64+now:
		return math.MaxInt64, success
	}
	return time.Duration(int64(timeout) - now), success
}

// readable returns how many bytes can be read without waiting; of a stream
// that is not known: 1.
func (p *Process) readable(fd uint64) (uint64, errno) {
	d, e := p.own("poll_oneoff", fd, rightPoll)
	switch {
	case e != success:
		return 0, e
	case d.file == nil:
		return 1, success
	case d.file.Kind() != volume.File:
		return 0, eBADF
	}
	i, err := d.file.Stat()
	if err != nil {
		return 0, p.result(err)
	}
	return uint64(max(i.Size-d.offset, 0)), success
}

// await waits until one is ready, by the clock of the guest. It stops a guest that
// has no time left.
func (p *Process) await(ctx context.Context, list []subscription) {
	shortest := time.Duration(math.MaxInt64)
	for _, s := range list {
		if s.ready {
			shortest = 0
		} else {
			shortest = min(shortest, s.wait)
		}
	}
	if shortest > 0 {
		resume := p.Pause(ctx)
		p.clock.Sleep(ctx, shortest)
		resume()
	}
	p.check(ctx)
	for i := range list {
		if list[i].wait <= shortest {
			list[i].ready = true
		}
	}
}

// writeEvents writes an event for each subscription that is ready and returns
// how many.
func writeEvents(out []byte, list []subscription) uint32 {
	var n uint32
	for _, s := range list {
		if !s.ready {
			continue
		}
		e := out[n*eventSize:][:eventSize]
		clear(e)
		le.PutUint64(e, s.userdata)
		le.PutUint16(e[8:], uint16(s.errno))
		e[10] = s.kind
		le.PutUint64(e[16:], s.nbytes)
		n++
	}
	return n
}
