package image

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func mappedOf(t testing.TB, m *Memory) *mapped {
	t.Helper()
	s, ok := m.space.(*mapped)
	if !ok {
		t.Skip("no mappings here")
	}
	return s
}

// flags returns the flags of the mappings in an area (proc_pid_smaps, VmFlags).
func flags(t *testing.T, a area) (list []string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	in := false
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		var from, to uint64
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			in = from >= a.address() && to <= a.address()+a.size
		}
		if f, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && in {
			list = append(list, f+" ")
		}
	}
	return list
}

// TestAddressesCostNothing reserves many of the largest memories. None counts as
// memory that the system has promised, whatever its limit, and none may
// have huge pages.
func TestAddressesCostNothing(t *testing.T) {
	i := newImage(t, patchy(3))
	for range 50 {
		m, g := adoptedOf(t, Options{Limit: 1 << 32, Image: i})
		g.Grow(1)
		s := mappedOf(t, m)
		fs := flags(t, s.area)
		if len(fs) < 3 {
			t.Fatalf("mappings of a memory: %q", fs)
		}
		for _, f := range fs {
			if strings.Contains(f, " ac ") || !strings.Contains(f, " nr ") || !strings.Contains(f, " nh ") {
				t.Fatalf("a mapping counts as memory, or may have huge pages: %q of %q", f, fs)
			}
		}
	}
}

// TestLockedPages locks a memory, so that its pages cannot be dropped: they are
// written then.
func TestLockedPages(t *testing.T) {
	want := patchy(3)
	for _, method := range Methods() {
		m, g := adoptedOf(t, Options{Limit: 9 * wasmPage, Image: newImage(t, want), Method: method, Keep: 4096})
		mappedOf(t, m)
		g.Grow(2)
		if err := unix.Mlock(g.buf); err != nil {
			t.Skip(err)
		}
		if err := unix.Madvise(g.buf, unix.MADV_DONTNEED); !errors.Is(err, unix.EINVAL) {
			t.Fatalf("locked pages can be dropped: %v", err)
		}
		for range 3 {
			paint(g.buf[10_000:50_000], 7)
			g.buf[len(g.buf)-1] = 7
			if _, err := m.Reset(); err != nil || !bytes.Equal(g.buf, want) {
				t.Fatalf("%s: not the image: %v", method, err)
			}
			g.Grow(2)
			if !bytes.Equal(g.buf[3*wasmPage:], make([]byte, 2*wasmPage)) {
				t.Fatalf("%s: what was grown is not zero", method)
			}
			g.buf[len(g.buf)-1] = 7
		}
		if _, err := m.Reset(); err != nil {
			t.Fatal(err)
		}
		if err := m.Trim(); err != nil || !bytes.Equal(g.buf, want) {
			t.Errorf("%s: trimmed, not the image: %v", method, err)
		}
	}
}

// TestHugePages asks the kernel to join pages, whatever its settings: it must not,
// and what was written must be found.
func TestHugePages(t *testing.T) {
	const collapse = 25 // MADV_COLLAPSE, Linux 6.1
	want := bytes.Repeat(patchy(2), 40)
	for _, method := range Methods() {
		m, g := adoptedOf(t, Options{Limit: 160 * wasmPage, Image: newImage(t, want), Method: method})
		s := mappedOf(t, m)
		for range 2 {
			g.Grow(70)
			for at := 0; at < len(g.buf); at += 300_000 {
				g.buf[at]++
			}
			if err := unix.Madvise(s.area.bytes(0, s.usable), collapse); err == nil {
				t.Logf("%s: the kernel joins pages", method)
			}
			if _, err := m.Reset(); err != nil || !bytes.Equal(g.buf, want) {
				t.Fatalf("%s: not the image: %v", method, err)
			}
		}
	}
}

// TestSwapped reads entries of pages that are swapped out, on their way, or
// of the page that all share.
func TestSwapped(t *testing.T) {
	k := entriesOf{list: []uint64{
		0, entryPresent | entryFile, entrySwapped | entryFile, entrySwapped, entryPresent | entryOwn, entryPresent, 0, entryPresent,
	}}
	regions, end, err := newFinder(MethodPagemap).find(k, -1, area{}, 4096, 9*4096, 4096)
	want := []region{{4 * 4096, 6 * 4096, false}, {6 * 4096, 7 * 4096, true}, {8 * 4096, 9 * 4096, true}}
	if err != nil || end != 9*4096 || !slices.Equal(regions, want) {
		t.Errorf("%v, %d, %v", regions, end, err)
	}
}

type entriesOf struct {
	kernel
	list []uint64
}

func (k entriesOf) entries(_ int, _ area, _ uint64, entries []uint64) error {
	copy(entries, k.list)
	return nil
}

// TestManyRegions writes every other page, so that no list holds all of them.
func TestManyRegions(t *testing.T) {
	want := patchy(40)
	page := os.Getpagesize()
	for _, method := range Methods() {
		m, g := adoptedOf(t, Options{Limit: 60 * wasmPage, Image: newImage(t, want), Method: method})
		g.Grow(9)
		n := 0
		for at := 0; at < 40*wasmPage; at += 2 * page {
			g.buf[at]++
			n++
		}
		g.buf[len(g.buf)-1] = 9
		got, err := m.Reset()
		if err != nil || !bytes.Equal(g.buf, want) {
			t.Fatalf("%s: not the image: %v", method, err)
		}
		if (method == MethodScan || method == MethodPagemap) && got != n+1 {
			t.Errorf("%s: %d pages, %d were written", method, got, n+1)
		}
	}
}

// TestManyAtOnce makes, uses and releases memories of one image in many goroutines.
func TestManyAtOnce(t *testing.T) {
	want := patchy(6)
	for _, method := range Methods() {
		i, err := New(want)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				for range 10 {
					m, err := NewMemory(Options{Limit: 9 * wasmPage, Image: i, Method: method})
					if err != nil {
						t.Error(err)
						return
					}
					g := &guest{memory: m, buf: m.Reallocate(wasmPage)}
					err = m.Adopt(g)
					for at := range 20 {
						g.buf[at*4096+worker]++
						g.Grow(uint32(at % 3))
						g.buf[len(g.buf)-1]++
						_, e := m.Reset()
						_ = m.Private()
						if err = errors.Join(err, e); err != nil || !bytes.Equal(g.buf, want) {
							t.Errorf("%s: not the image: %v", method, err)
						}
					}
					if err := m.Release(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
}

const unprivileged = "SANDBOXD_TEST_UNPRIVILEGED"

// TestUnprivileged runs the tests of all methods as a user without rights, who
// has the same methods.
func TestUnprivileged(t *testing.T) {
	if want := os.Getenv(unprivileged); want != "" {
		if os.Getuid() == 0 {
			t.Fatal("still root")
		}
		if got := fmt.Sprint(Methods()); got != want {
			t.Fatalf("methods without rights: %s, with: %s", got, want)
		}
		TestResetsInEveryMethod(t)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("this process has no more rights than any")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestUnprivileged$", "-test.v")
	cmd.Env = []string{unprivileged + "=" + fmt.Sprint(Methods())}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestUnprivileged") {
		t.Errorf("%v:\n%s", err, out)
	}
}
