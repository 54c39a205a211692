package runtime

import (
	goruntime "runtime"
	"slices"
	"sync"
)

// place is where a package is on its way to be loaded.
type place uint8

const (
	nowhere place = iota // nobody asked for it
	inBackground
	forCall // a call waits for it
	begun
)

// loads are the packages that are to be loaded: first those that calls wait for, in
// the order of their first calls, then the others as they came. The zero value is
// ready.
type loads struct {
	mu         sync.Mutex
	called     []*Package
	others     []*Package
	running    int // loads
	background int // of these, those that no call waited for when they began
}

// mostLoads returns how many loads run at once, and of these in the background: a
// load that a call waits for finds a processor free.
func mostLoads() (all, background int) {
	all = max(2, goruntime.GOMAXPROCS(0))
	return all, all / 2
}

// ask has a package loaded, unless that has begun.
func (l *loads) ask(p *Package, to place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.later.place >= to {
		return
	}
	if p.later.place == inBackground {
		l.others = slices.DeleteFunc(l.others, func(o *Package) bool { return o == p })
	}
	p.later.place = to
	if to == forCall {
		l.called = append(l.called, p)
	} else {
		l.others = append(l.others, p)
	}
	l.next()
}

// next begins as many loads as there is room for. The caller holds the lock.
func (l *loads) next() {
	all, background := mostLoads()
	for l.running < all {
		var p *Package
		waited := len(l.called) > 0
		switch {
		case waited:
			p, l.called = l.called[0], l.called[1:]
		case len(l.others) > 0 && l.background < background:
			p, l.others = l.others[0], l.others[1:]
			l.background++
		default:
			return
		}
		p.later.place = begun
		l.running++
		go l.run(p, waited)
	}
}

// run loads one package, and begins what has room then.
func (l *loads) run(p *Package, waited bool) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running--
		if !waited {
			l.background--
		}
		l.next()
	}()
	p.finish()
}
