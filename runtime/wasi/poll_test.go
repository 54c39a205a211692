package wasi

import (
	"bytes"
	"math"
	"testing"
	"time"
)

func subscribeClock(id uint32, timeout uint64, flags uint16) []byte {
	b := make([]byte, subscriptionSize)
	le.PutUint64(b, 0x1122334455667788)
	b[8] = eventClock
	le.PutUint32(b[16:], id)
	le.PutUint64(b[24:], timeout)
	le.PutUint16(b[40:], flags)
	return b
}

func subscribeFd(kind byte, fd uint32) []byte {
	b := make([]byte, subscriptionSize)
	le.PutUint64(b, uint64(fd))
	b[8] = kind
	le.PutUint32(b[16:], fd)
	return b
}

// events returns what poll_oneoff reported: kind and errno by userdata.
func (g *guest) events() map[uint64][2]uint16 {
	m := map[uint64][2]uint16{}
	for i := range g.u32(atResult) {
		e := g.bytes(atPath+i*eventSize, eventSize)
		m[le.Uint64(e)] = [2]uint16{uint16(e[10]), le.Uint16(e[8:])}
	}
	return m
}

func (g *guest) poll(subscriptions ...[]byte) {
	g.t.Helper()
	g.put(atData, bytes.Join(subscriptions, nil))
	g.ok("poll_oneoff", atData, atPath, uint64(len(subscriptions)), atResult)
}

func TestPollClock(t *testing.T) {
	now, mono := epoch, 100*time.Hour
	g := start(t, Options{Clock: fixedClock{wall: now, mono: mono}})
	const soon = uint64(20 * time.Millisecond)
	for name, c := range map[string]struct {
		subscription []byte
		least        time.Duration
	}{
		"relative":           {subscribeClock(clockMonotonic, soon, 0), time.Duration(soon)},
		"relative, realtime": {subscribeClock(clockRealtime, soon, 0), time.Duration(soon)},
		"absolute":           {subscribeClock(clockMonotonic, uint64(mono)+soon, clockAbsolute), time.Duration(soon)},
		"absolute, realtime": {subscribeClock(clockRealtime, uint64(now.UnixNano())+soon, clockAbsolute), time.Duration(soon)},
		"absolute, past":     {subscribeClock(clockMonotonic, 1, clockAbsolute), 0},
		"none":               {subscribeClock(clockMonotonic, 0, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			g.poll(c.subscription)
			if waited := time.Since(begun); waited < c.least || waited > c.least+5*time.Second {
				t.Errorf("waited %v, want %v", waited, c.least)
			}
			if e := g.events(); len(e) != 1 || e[0x1122334455667788] != [2]uint16{eventClock, 0} {
				t.Errorf("events %v", e)
			}
		})
	}
}

// TestPollShortest: only the clock that is first is reported.
func TestPollShortest(t *testing.T) {
	g := start(t, Options{})
	late := subscribeClock(clockMonotonic, math.MaxUint64, 0)
	le.PutUint64(late, 1)
	g.poll(late, subscribeClock(clockMonotonic, 1000, 0))
	if e := g.events(); len(e) != 1 || e[0x1122334455667788] != [2]uint16{eventClock, 0} {
		t.Errorf("events %v", e)
	}
}

// TestPollFiles: files and streams are ready at once, whatever clocks say.
func TestPollFiles(t *testing.T) {
	c := begin(t, writer, Options{})
	fd := c.mustOpen(fdVolume, "file", 0, rightRead|rightWrite, 0)
	c.poll(
		subscribeClock(clockMonotonic, uint64(time.Hour), 0),
		subscribeFd(eventFdRead, 0), subscribeFd(eventFdWrite, 1), subscribeFd(eventFdRead, uint32(fd)),
		subscribeFd(eventFdRead, 77), subscribeFd(eventFdRead, fdVolume),
	)
	want := map[uint64][2]uint16{
		0: {eventFdRead, 0}, 1: {eventFdWrite, 0}, fd: {eventFdRead, 0},
		77: {eventFdRead, uint16(eBADF)}, fdVolume: {eventFdRead, uint16(eBADF)},
	}
	got := c.events()
	if len(got) != len(want) {
		t.Errorf("events %v, want %v", got, want)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("event %d: %v, want %v", k, got[k], v)
		}
	}
	if n := c.u64(atPath + 2*eventSize + 16); n != uint64(len("old content\n")) {
		t.Errorf("%d bytes can be read", n)
	}
}

func TestPollRefused(t *testing.T) {
	g := start(t, Options{})
	g.want(eINVAL, "poll_oneoff", atData, atPath, 0, atResult)
	g.want(eINVAL, "poll_oneoff", atData, atPath, maxSubscriptions+1, atResult)
	g.want(eFAULT, "poll_oneoff", atData, atPath, maxSubscriptions, atResult)
	g.want(eFAULT, "poll_oneoff", 0xffffff00, atPath, 100, atResult)
	g.want(eFAULT, "poll_oneoff", atData, 0xfffffff0, 1, atResult)
	g.want(eFAULT, "poll_oneoff", atData, atPath, 1, 0xfffffffe)
	unknown := subscribeFd(3, 0)
	g.put(atData, unknown)
	g.want(eINVAL, "poll_oneoff", atData, atPath, 1, atResult)
	for _, s := range [][]byte{subscribeClock(2, 0, 0), subscribeClock(99, 0, 0), subscribeClock(1, 0, 2)} {
		g.poll(s)
		if e := g.events(); e[0x1122334455667788] != [2]uint16{eventClock, uint16(eINVAL)} {
			t.Errorf("events %v", e)
		}
	}
}
