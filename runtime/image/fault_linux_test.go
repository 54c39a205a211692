package image

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// faulty is Linux with calls that fail.
type faulty struct {
	kernel
	fail func(call string) bool
}

var errInjected = errors.New("injected")

func (f faulty) refuse(call string) error {
	if f.fail(call) {
		return errInjected
	}
	return nil
}

func (f faulty) file(memory []byte, c *contents) (int, error) {
	if err := f.refuse("file"); err != nil {
		return -1, err
	}
	return f.kernel.file(memory, c)
}

func (f faulty) view(fd int, size uint64) ([]byte, error) {
	if err := f.refuse("view"); err != nil {
		return nil, err
	}
	return f.kernel.view(fd, size)
}

func (f faulty) pagemap() (int, error) {
	if err := f.refuse("pagemap"); err != nil {
		return -1, err
	}
	return f.kernel.pagemap()
}

func (f faulty) reserve(size uint64) (area, error) {
	if err := f.refuse("reserve"); err != nil {
		return area{}, err
	}
	return f.kernel.reserve(size)
}

func (f faulty) open(a area, from, to uint64) error {
	return errors.Join(f.refuse("open"), f.kernel.open(a, from, to))
}

func (f faulty) overlay(a area, fd int, size uint64) error {
	if err := f.refuse("overlay"); err != nil {
		return err
	}
	return f.kernel.overlay(a, fd, size)
}

func (f faulty) drop(a area, from, to uint64) error {
	if err := f.refuse("drop"); err != nil {
		return err
	}
	return f.kernel.drop(a, from, to)
}

func (f faulty) scan(pagemap int, a area, from, to uint64, b *scanBuffer) (int, uint64, error) {
	if err := f.refuse("scan"); err != nil {
		return 0, 0, err
	}
	return f.kernel.scan(pagemap, a, from, to, b)
}

func (f faulty) entries(pagemap int, a area, from uint64, entries []uint64) error {
	return errors.Join(f.refuse("entries"), f.kernel.entries(pagemap, a, from, entries))
}

// TestProbe refuses calls as a sandbox around the process would. What is left
// is found, and puts memories back.
func TestProbe(t *testing.T) {
	all := probe(linux{}).methods
	without := func(ms ...Method) []Method {
		return slices.DeleteFunc(slices.Clone(all), func(m Method) bool { return slices.Contains(ms, m) })
	}
	for _, tt := range []struct {
		refused string
		want    []Method
	}{
		{"", all},
		{"scan", without(MethodScan)},
		{"entries", without(MethodPagemap)},
		{"scan entries", without(MethodScan, MethodPagemap)},
		{"pagemap", without(MethodScan, MethodPagemap)},
		{"file", heapMethods},
		{"view", heapMethods},
		{"reserve", heapMethods},
		{"overlay", heapMethods},
		{"drop", all},
	} {
		s := probe(faulty{linux{}, func(call string) bool { return slices.Contains(strings.Fields(tt.refused), call) }})
		if !slices.Equal(s.methods, tt.want) {
			t.Errorf("without %q: %v, not %v", tt.refused, s.methods, tt.want)
		}
		want := patchy(3)
		for _, m := range s.methods {
			_, g := adoptedOf(t, Options{Limit: 5 * wasmPage, Image: imageOf(t, s, want), Method: m})
			g.buf[0]++
			g.Grow(1)
			g.buf[len(g.buf)-1]++
			if _, err := g.memory.Reset(); err != nil || !bytes.Equal(g.buf, want) {
				t.Errorf("without %q, %s: not the image: %v", tt.refused, m, err)
			}
		}
	}
}

func adoptedOf(t testing.TB, o Options) (*Memory, *guest) {
	t.Helper()
	m, g := begin(t, o, 0)
	if err := m.Adopt(g); err != nil {
		t.Fatal(err)
	}
	return m, g
}

// TestProbeTrustsNothing has kernels that answer, and answer wrong.
func TestProbeTrustsNothing(t *testing.T) {
	for name, k := range map[string]kernel{"forgetful": forgetful{linux{}}, "stuck": stuck{linux{}}} {
		if s := probe(k); slices.Contains(s.methods, MethodScan) {
			t.Errorf("%s: %v", name, s.methods)
		}
	}
}

// forgetful lists nothing.
type forgetful struct{ kernel }

func (forgetful) scan(_ int, _ area, _, to uint64, _ *scanBuffer) (int, uint64, error) {
	return 0, to, nil
}

// stuck does not go on.
type stuck struct{ kernel }

func (stuck) scan(_ int, _ area, from, _ uint64, _ *scanBuffer) (int, uint64, error) {
	return 0, from, nil
}

// lifetime makes an image and a memory, uses and releases them.
func lifetime(s system, m Method) (err error) {
	want := patchy(3)
	i, err := s.image(want)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	memory, err := NewMemory(Options{Limit: 9 * wasmPage, Image: i, Method: m})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memory.Release()) }()
	g := &guest{memory: memory, buf: memory.Reallocate(wasmPage)}
	if err := memory.Adopt(g); err != nil {
		if memory.Adopt(g) == nil {
			return errors.New("adopted after it failed")
		}
		return err
	}
	for range 3 {
		g.buf[0]++
		if _, ok := g.Grow(2); ok {
			g.buf[len(g.buf)-1]++
		} else if !bytes.Equal(g.buf[1:], want[1:]) {
			return errors.New("refused growth changed the memory")
		}
		if _, err := memory.Reset(); err != nil {
			if _, again := memory.Reset(); again == nil {
				return errors.New("reset after it failed")
			}
			return err
		}
		if !bytes.Equal(g.buf, want) {
			return errors.New("not the image")
		}
	}
	return nil
}

// TestFaults fails every call to the kernel once, and from each on. All that is
// not an error is right, and nothing is left behind.
func TestFaults(t *testing.T) {
	for _, m := range probe(linux{}).methods {
		open, mapped := len(list(t)), mappings(t)
		failed := 0
		for at := 0; ; at++ {
			calls := 0
			var name string
			for _, on := range []bool{false, true} {
				calls = 0
				k := faulty{linux{}, func(call string) bool {
					calls++
					if calls == at+1 {
						name = call
					}
					return calls == at+1 || on && calls > at
				}}
				err := lifetime(system{methods: []Method{m}, image: mappedImage(k, []Method{m})}, m)
				if err != nil && !errors.Is(err, errInjected) && !errors.Is(err, errNoMore) {
					t.Errorf("%s, call %d (%s) fails: %v", m, at, name, err)
				}
				if err != nil {
					failed++
				}
			}
			if calls <= at {
				break
			}
		}
		if failed < 5 {
			t.Errorf("%s: %d failures only", m, failed)
		}
		if d := len(list(t)); d != open {
			t.Errorf("%s: %d descriptors, %d before", m, d, open)
		}
		if n := mappings(t); n != mapped {
			t.Errorf("%s: %d mappings of images, %d before", m, n, mapped)
		}
	}
}

// list returns what this process has open.
func list(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && (strings.Contains(target, "sandboxd-image") || strings.Contains(target, "pagemap")) {
			open = append(open, e.Name()+" "+target)
		}
	}
	return open
}

func mappings(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("sandboxd-image"))
}

// TestNothingIsLeftOpen holds that an image and its memories close what they
// open, and that no program started from here gets it.
func TestNothingIsLeftOpen(t *testing.T) {
	if len(probed().methods) == len(heapMethods) {
		t.Skip("no mappings here")
	}
	before, mapped := len(list(t)), mappings(t)
	i, err := New(patchy(3))
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMemory(Options{Limit: 1 << 32, Image: i})
	if err != nil {
		t.Fatal(err)
	}
	open := list(t)
	if len(open) != before+2 {
		t.Errorf("open: %v", open)
	}
	for _, o := range open {
		var fd int
		if _, err := fmt.Sscan(o, &fd); err != nil {
			t.Fatal(err)
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s is handed on to programs: %v", o, err)
		}
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if len(list(t)) != before+2 {
		t.Error("closed while a memory is in use")
	}
	if err := m.Release(); err != nil {
		t.Fatal(err)
	}
	if n := len(list(t)); n != before || mappings(t) != mapped {
		t.Errorf("%d open, %d mappings are left", n-before, mappings(t)-mapped)
	}
}

// TestSealed tries to change the file of an image.
func TestSealed(t *testing.T) {
	i := newImage(t, patchy(3))
	b, ok := i.backing.(*mappedBacking)
	if !ok {
		t.Skip("no files in memory here")
	}
	if _, err := unix.Pwrite(b.file, []byte("x"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("writing: %v", err)
	}
	if err := unix.Ftruncate(b.file, 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("truncating: %v", err)
	}
	if _, err := unix.Mmap(b.file, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); !errors.Is(err, unix.EPERM) {
		t.Errorf("mapping it to write: %v", err)
	}
}
