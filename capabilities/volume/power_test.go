//go:build unix

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// What the power-loss model assumes. A file system is inodes and directories, which
// are maps from names to inodes. When power is lost:
//
//   - A file's content is that of its last sync; one that was never synced is empty.
//     Mode and times of a file or directory that was set after its last sync is or
//     is not there.
//   - A directory has the entries of its last sync. Each later operation on it (create,
//     mkdir, link, rename, remove) is or is not there, one by one and in their order;
//     which of them are is up to the disk: none, all, the first or last ones, any.
//   - An operation on two directories is there in both or in neither, unless a sync
//     has made it durable in one: then it is there in that one for certain. A file
//     may be at both of its names then, or at none; a directory is moved as a whole.
//   - What is not reachable from the root is gone; a file at two names is one file.
//   - The store is durable by itself: the intent is there once Commit has returned.
//
// Not modelled: writes that are torn or reordered inside a file after its sync,
// disks that lie about a sync, file systems that lose a directory as a whole.
type model struct {
	t      *testing.T
	real   string // the folder that the recorded process works in
	inodes map[int]*inode
	root   int
	events int
}

type inode struct {
	kind    Kind
	host    uint64 // number in the recorded folder, of what was there at first
	target  string
	content []byte
	mode    fs.FileMode
	mtime   time.Time

	live    map[string]int // entries as the process sees them
	durable map[string]int // entries that are on the disk
	entries []entryEvent   // since then
	attrs   []attrEvent    // since its last sync
}

type entryEvent struct {
	event int
	name  string
	to    int  // 0: removed
	dir   bool // what is made or removed is a directory
}

type attrEvent struct {
	event int
	mode  fs.FileMode
	mtime time.Time
}

// newModel returns a model of a folder, all of which is durable.
func newModel(t *testing.T, dir string) *model {
	m := &model{t: t, real: dir, inodes: map[int]*inode{}}
	m.root = m.load(dir)
	return m
}

func (m *model) load(path string) int {
	fi, err := os.Lstat(path)
	must(m.t, err)
	for id, n := range m.inodes { // at two names
		if n.kind != Dir && n.host == inodeNumber(fi) {
			return id
		}
	}
	id := m.add(&inode{kind: kindOf(fi.Mode()), mode: fi.Mode(), mtime: fi.ModTime(), host: inodeNumber(fi)})
	switch n := m.inodes[id]; n.kind {
	case File:
		n.content, err = os.ReadFile(path)
	case Symlink:
		n.target, err = os.Readlink(path)
	case Dir:
		var list []fs.DirEntry
		list, err = os.ReadDir(path)
		n.live, n.durable = map[string]int{}, map[string]int{}
		for _, e := range list {
			n.live[e.Name()] = m.load(filepath.Join(path, e.Name()))
		}
		maps.Copy(n.durable, n.live)
	case Special:
	}
	must(m.t, err)
	return id
}

func (m *model) add(n *inode) int {
	id := len(m.inodes) + 1
	m.inodes[id] = n
	return id
}

// at returns the inode that the process sees at a path.
func (m *model) at(path string) int {
	if path == "." {
		return m.root
	}
	dir, name := split(path)
	id, ok := m.inodes[m.at(dir)].live[name]
	if !ok {
		m.t.Fatalf("model: no %s", path)
	}
	return id
}

func (m *model) entry(path string, to int) {
	dir, name := split(path)
	up := m.inodes[m.at(dir)]
	is := to
	if is == 0 {
		if is = up.live[name]; is == 0 {
			return // there is nothing to remove
		}
	}
	up.entries = append(up.entries, entryEvent{m.events, name, to, m.inodes[is].kind == Dir})
	if to == 0 {
		delete(up.live, name)
		return
	}
	up.live[name] = to
}

// did records an operation that was done.
func (m *model) did(op, name, to string) {
	m.events++
	switch op {
	case "create":
		m.entry(name, m.add(&inode{kind: File, mode: 0o600}))
	case "mkdir":
		m.entry(name, m.add(&inode{kind: Dir, mode: 0o700, live: map[string]int{}, durable: map[string]int{}}))
	case "link":
		m.entry(to, m.at(name))
	case "symlink":
		m.entry(to, m.add(&inode{kind: Symlink, target: m.inodes[m.at(name)].target}))
	case "rename":
		id := m.at(name)
		m.entry(name, 0)
		m.entry(to, id)
	case "remove", "removeall":
		m.entry(name, 0)
	case "chmod", "chtimes":
		fi, err := os.Lstat(filepath.Join(m.real, name))
		must(m.t, err)
		n := m.inodes[m.at(name)]
		n.attrs = append(n.attrs, attrEvent{m.events, fi.Mode(), fi.ModTime()})
	case "sync file":
		n, path := m.inodes[m.at(name)], filepath.Join(m.real, name)
		b, err := os.ReadFile(path)
		must(m.t, err)
		fi, err := os.Lstat(path)
		must(m.t, err)
		n.content, n.mode, n.mtime, n.attrs = b, fi.Mode(), fi.ModTime(), nil
	case "sync":
		n := m.inodes[m.at(name)]
		m.whole(n)
		n.durable, n.entries = maps.Clone(n.live), nil
		n.settle(func(int) bool { return true })
	default:
		m.t.Fatalf("model: unknown operation %s", op)
	}
}

// whole makes renames of directories durable in both of their places when one is
// synced.
func (m *model) whole(synced *inode) {
	events := map[int]bool{}
	for _, e := range synced.entries {
		events[e.event] = true
	}
	for _, n := range m.inodes {
		n.entries = slices.DeleteFunc(n.entries, func(e entryEvent) bool {
			if !e.dir || !events[e.event] {
				return false
			}
			if e.to == 0 {
				delete(n.durable, e.name)
			} else {
				n.durable[e.name] = e.to
			}
			return true
		})
	}
}

// settle decides which attributes are on the disk.
func (n *inode) settle(survives func(int) bool) {
	for _, a := range n.attrs {
		if survives(a.event) {
			n.mode, n.mtime = a.mode, a.mtime
		}
	}
	n.attrs = nil
}

// lose makes, in a new folder, what is left after a loss of power, and returns the
// stamps of what was there at first, by its old inode number.
func (m *model) lose(dir string, survives func(event int) bool) map[uint64]Stamp {
	made := map[int]string{}
	var put func(id int, path string)
	put = func(id int, path string) {
		n := m.inodes[id]
		if first, ok := made[id]; ok {
			must(m.t, os.Link(first, path))
			return
		}
		made[id] = path
		after := *n
		after.settle(survives)
		switch n.kind {
		case File:
			must(m.t, os.WriteFile(path, n.content, 0o600))
		case Symlink:
			must(m.t, os.Symlink(n.target, path))
			return
		case Dir:
			must(m.t, os.Mkdir(path, 0o700))
			entries := maps.Clone(n.durable)
			for _, e := range n.entries {
				switch {
				case !survives(e.event):
				case e.to == 0:
					delete(entries, e.name)
				default:
					entries[e.name] = e.to
				}
			}
			for _, name := range slices.Sorted(maps.Keys(entries)) {
				put(entries[name], filepath.Join(path, name))
			}
		case Special:
			m.t.Fatal("special file in the model")
		}
		must(m.t, os.Chmod(path, after.mode))
		must(m.t, os.Chtimes(path, time.Time{}, after.mtime))
	}
	put(m.root, dir)
	stamps := map[uint64]Stamp{}
	for id, path := range made {
		if n := m.inodes[id]; n.host != 0 {
			fi, err := os.Lstat(path)
			must(m.t, err)
			stamps[n.host] = stampOf(fi)
		}
	}
	return stamps
}

// record does something with a folder and stops it at an event. It returns what
// is on the disk then, and whether it was stopped.
func (w *world) record(t *testing.T, h *HostDir, stop int, do func() error) (*model, bool) {
	t.Helper()
	m := newModel(t, w.dir)
	dead := false
	stopped := func() error {
		if dead = dead || m.events >= stop; dead {
			return errDead
		}
		return nil
	}
	h.disk.fault = func(string, string) error { return stopped() }
	h.disk.done = m.did
	w.journal.fault = func(string) error { return stopped() }
	err := do()
	if err != nil && !errors.Is(err, errDead) {
		t.Fatal(err)
	}
	return m, err != nil || dead
}

// lose returns what is left of a world after a loss of power.
func (w *world) lose(t *testing.T, m *model, name string, survives func(int) bool) *world {
	after := &world{
		dir: w.dir + name, before: w.before, after: w.after, far: w.far,
		journal: &journal{name: "store", done: slices.Clone(w.journal.done)},
	}
	stamps := m.lose(after.dir, survives)
	for _, p := range w.journal.pending {
		after.journal.pending = append(after.journal.pending, Intent{p.ID, moved(t, p.Data, after.dir, stamps)})
	}
	return after
}

// survivals are what a disk may have of what was not synced.
func survivals(m *model) map[string]func(int) bool {
	list := map[string]func(int) bool{
		"none": func(int) bool { return false },
		"all":  func(int) bool { return true },
	}
	for i := range 2 {
		upTo := rand.IntN(m.events + 1)
		list[fmt.Sprint("first ", upTo)] = func(e int) bool { return e <= upTo }
		list[fmt.Sprint("some ", i)] = some(m)
	}
	from := m.events - rand.IntN(3)
	list[fmt.Sprint("last from ", from)] = func(e int) bool { return e >= from }
	return list
}

func some(m *model) func(int) bool {
	chosen, share := map[int]bool{}, rand.Float64()
	for e := range m.events + 1 {
		chosen[e] = rand.Float64() < share
	}
	return func(e int) bool { return chosen[e] }
}

// TestPowerLoss loses power after each operation in turn, with what the disk may
// have of what was not synced, and once more while that is being settled. The
// folder is then as before or, if the store has the change, as after.
func TestPowerLoss(t *testing.T) { testPowerLoss(t, false) }

// TestPowerLossFar is TestPowerLoss where nothing can be renamed.
func TestPowerLossFar(t *testing.T) { testPowerLoss(t, true) }

func testPowerLoss(t *testing.T, far bool) {
	worlds := livelyWorlds(t)
	lost, undone, step := 0, 0, every(7)
	if far {
		step = every(11) * 3 // each takes more operations
	}
	for stop := step; !t.Failed(); stop += step {
		w := worlds(fmt.Sprint(stop))
		w.far = far
		h := w.open(t)
		g := &guest{New(h, Options{Budget: ample()})}
		livelyCall(t, g)
		c, err := g.Change()
		must(t, err)
		m, died := w.record(t, h, stop, func() error { return w.journal.commit(t.Context(), h, c) })
		must(t, g.Close())
		must(t, h.Close())
		for how, survives := range survivals(m) {
			where := fmt.Sprintf("after %d, %s", stop, how)
			after := w.lose(t, m, " "+how, survives)
			if after.committed() {
				lost++
				if !equal(visible(image(t, after.dir)), w.after) {
					undone++
				}
			}
			again := after.loseAgain(t, &where)
			after.check(t, where)
			again.check(t, where)
			must(t, errors.Join(os.RemoveAll(after.dir), os.RemoveAll(again.dir)))
		}
		must(t, os.RemoveAll(w.dir))
		if !died {
			break
		}
	}
	if !t.Failed() && (lost*step < 100 || undone*step < 50) {
		t.Errorf("%d losses after the commit, %d of them of something: the test does not reach what it should", lost, undone)
	}
}

// loseAgain settles a copy of a world and loses power meanwhile.
func (w *world) loseAgain(t *testing.T, where *string) *world {
	again := w.lose(t, newModel(t, w.dir), " again", func(int) bool { return true })
	stop := 1 + rand.IntN(60)
	*where += fmt.Sprint(", again after ", stop)
	h := again.open(t)
	defer h.Close()
	m, _ := again.record(t, h, stop, func() error { return h.Settle(t.Context()) })
	last := again.lose(t, m, " last", some(m))
	must(t, os.RemoveAll(again.dir))
	return last
}
