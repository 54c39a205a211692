package volume

import (
	"errors"
	"flag"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
)

var (
	hostileRounds = 40_000
	longRounds    = flag.Int("rounds", 0, "how often each loop of TestHostileLoops goes round; the long job takes 200000")
)

// hostile are loops of a guest that wants to fill the host's memory. Each is
// asked for its next step in turn.
var hostile = map[string]func(g *guest) func(i int) error{
	"rename to new names in a new directory": func(g *guest) func(int) error {
		at := "made/f"
		return begun(errorsOf(g.mkdir("made"), g.write(at, "x", 0)), func(i int) error {
			to := "made/" + longName(i)
			defer func() { at = to }()
			return g.mv(at, to)
		})
	},
	"rename to new names": func(g *guest) func(int) error {
		at := "f"
		return begun(g.write(at, "x", 0), func(i int) error {
			to := longName(i)
			defer func() { at = to }()
			return g.mv(at, to)
		})
	},
	"rename to new names in a listed directory": func(g *guest) func(int) error {
		at := "f"
		_, err := g.List(g.Root())
		return begun(errorsOf(err, g.write(at, "x", 0)), func(i int) error {
			to := longName(i)
			defer func() { at = to }()
			return g.mv(at, to)
		})
	},
	"rename of a file of the base": func(g *guest) func(int) error {
		at := "old"
		return begun(g.mkdir("made"), func(i int) error {
			if i == 0 {
				if _, err := g.node(at, true); err != nil {
					at = "born"
					return g.write(at, "x", 0)
				}
			}
			to := "made/" + longName(i)
			defer func() { at = to }()
			return g.mv(at, to)
		})
	},
	"create and unlink": func(g *guest) func(int) error {
		return begun(g.mkdir("made"), func(i int) error {
			return errorsOf(g.write("made/"+longName(i), "x", 0), g.rm("made/"+longName(i)))
		})
	},
	"create and unlink in the root": func(g *guest) func(int) error {
		return func(i int) error { return errorsOf(g.write(longName(i), "x", 0), g.rm(longName(i))) }
	},
	"mkdir and rmdir": func(g *guest) func(int) error {
		return begun(g.mkdir("made"), func(i int) error {
			return errorsOf(g.mkdir("made/"+longName(i)), g.rm("made/"+longName(i)))
		})
	},
	"back and forth between directories": func(g *guest) func(int) error {
		at := "a/f"
		return begun(errorsOf(g.mkdir("a"), g.mkdir("b"), g.write(at, "x", 0)), func(i int) error {
			to := "a/" + longName(i)
			if i%2 == 0 {
				to = "b/" + longName(i)
			}
			defer func() { at = to }()
			return g.mv(at, to)
		})
	},
	"directories full and emptied": func(g *guest) func(int) error {
		dirs, inside := 0, 0
		return begun(g.mkdir("d0"), func(i int) error {
			err := g.write(fmt.Sprintf("d%d/%d", dirs, inside), "", 0)
			if inside++; err == nil && inside+dirs < 990 {
				return nil
			}
			for ; inside > 0; inside-- {
				_ = g.rm(fmt.Sprintf("d%d/%d", dirs, inside-1))
			}
			dirs++
			return g.mkdir(fmt.Sprintf("d%d", dirs))
		})
	},
	"files grown with holes and cut": func(g *guest) func(int) error {
		return func(i int) error {
			const chunks = 200
			name := fmt.Sprintf("f%d", i/chunks)
			if i%chunks < chunks-1 {
				return g.write(name, "x", int64(i%chunks)*chunkSize)
			}
			n, err := g.node(name, true)
			if err != nil {
				return err
			}
			return g.Truncate(n, 0)
		}
	},
	"write and truncate at growing offsets": func(g *guest) func(int) error {
		return begun(g.write("f", "", 0), func(i int) error {
			n, err := g.node("f", true)
			if err != nil {
				return err
			}
			return errorsOf(g.write("f", "x", int64(i)*7%(15<<20)), g.Truncate(n, int64(i)*5%(15<<20)))
		})
	},
	"unlink and write while open": func(g *guest) func(int) error {
		return func(i int) error {
			path := longName(i)
			if err := g.write(path, "x", 0); err != nil {
				return err
			}
			n, err := g.node(path, true)
			if err != nil {
				return err
			}
			must(panicking{}, g.Open(n)) // and never released
			if err := g.rm(path); err != nil {
				return err
			}
			_, err = g.WriteAt(n, make([]byte, 4096), 0)
			return err
		}
	},
	"unlink while open in a deep directory": func(g *guest) func(int) error {
		deep := strings.Repeat(strings.Repeat("d", 250)+"/", 14)
		var err error
		for i := range deep {
			if deep[i] == '/' {
				err = errorsOf(err, g.mkdir(deep[:i]))
			}
		}
		return begun(err, func(i int) error {
			path := fmt.Sprintf("%s%d", deep, i)
			if err := g.write(path, "", 0); err != nil {
				return err
			}
			n, err := g.node(path, true)
			if err != nil {
				return err
			}
			must(panicking{}, g.Open(n))
			return g.rm(path)
		})
	},
	"readdir of a growing directory": func(g *guest) func(int) error {
		return begun(g.mkdir("made"), func(i int) error {
			d, err := g.node("made", true)
			if err != nil {
				return err
			}
			if i < 500 {
				err = g.write("made/"+longName(i), "x", 0)
			}
			if i%100 == 0 {
				_, err = g.List(d)
			}
			return err
		})
	},
	"look-ups of missing names": func(g *guest) func(int) error {
		return func(i int) error { _, err := g.Walk(g.Root(), longName(i), true); return err }
	},
	"look-ups by long paths": func(g *guest) func(int) error {
		way := strings.Repeat("./", 1000)
		return func(i int) error { _, err := g.Walk(g.Root(), way+fmt.Sprint(i), true); return err }
	},
	"look-ups in a new directory": func(g *guest) func(int) error {
		return begun(g.mkdir("made"), func(i int) error {
			_, err := g.node("made/"+longName(i), true)
			if errors.Is(err, capabilities.ENOENT) {
				err = nil
			}
			return err
		})
	},
	"times of new names": func(g *guest) func(int) error {
		return func(i int) error { return errorsOf(g.write(longName(i), "", 0), g.touch(longName(i))) }
	},
	"effects of deep names": func(g *guest) func(int) error {
		deep := strings.Repeat(strings.Repeat("d", 250)+"/", 14)
		return func(i int) error {
			for j := range deep {
				if i == 0 && deep[j] == '/' {
					must(panicking{}, g.mkdir(deep[:j]))
				}
			}
			if i < 900 {
				return g.write(fmt.Sprintf("%s%d", deep, i), "", 0)
			}
			if i%1000 != 0 {
				return nil
			}
			must(panicking{}, g.touch("."))
			_, err := g.Change()
			g.Effects("/v")
			return err
		}
	},
}

func longName(i int) string { return fmt.Sprintf("%0250d", i) }

// begun returns a loop, or what kept it from being begun.
func begun(err error, step func(int) error) func(int) error {
	must(panicking{}, err)
	return step
}

// errorsOf returns the first error, as a program would stop.
func errorsOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

type panicking struct{}

func (panicking) Helper()           {}
func (panicking) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// TestHostileLoops runs each loop until the budget stops it, or long enough to
// see that it holds no more memory than it is charged for, three times at most.
func TestHostileLoops(t *testing.T) {
	rounds := hostileRounds
	switch {
	case *longRounds > 0:
		rounds = *longRounds
	case testing.Short():
		rounds /= 4
	}
	for name, loop := range hostile {
		for on, base := range map[string]func() Base{
			"memory": func() Base { return nil },
			"folder": func() Base {
				h, _ := planted(t, map[string]string{"old": "content", "d/x": "x"})
				return h
			},
		} {
			t.Run(name+" on "+on, func(t *testing.T) {
				b := &Budget{Bytes: 16 << 20, Files: 1000}
				base := base()
				before := heap()
				g := &guest{New(base, Options{Budget: b, Now: func() time.Time { return time.Unix(1e9, 0) }})}
				defer g.Close()
				step, i, err := loop(g), 0, error(nil)
				for ; i < rounds && err == nil; i++ {
					err = step(i)
				}
				if _, limited := errors.AsType[*LimitError](err); err != nil && !limited {
					t.Fatalf("round %d: %v", i, err)
				}
				const slack = 4 << 20
				grown, held := heap()-before, b.used.bytes+b.used.seen
				if grown > 3*held+slack {
					t.Errorf("%d rounds (%v): heap grew by %d bytes, %d are charged", i, err, grown, held)
				}
				goruntime.KeepAlive(g)
			})
		}
	}
}

func heap() int64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
