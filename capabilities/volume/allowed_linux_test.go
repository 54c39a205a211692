package volume

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
)

const userEnv = "VOLUME_TEST_USER"

// TestAllowed tries, as a user who may not do everything, what the host would
// refuse once it is committed: it is refused before.
func TestAllowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	const nobody = 65534
	top, err := os.MkdirTemp("", "volume")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(top)) })
	must(t, os.Chmod(top, 0o755))
	dir := filepath.Join(top, "v")
	plant(t, dir, map[string]string{
		"mine": "m", "theirs": "t", "secret": "s", "locked/f": "f", "shared/f": "f", "shared/mine": "m", "d/f": "f",
	})
	for _, p := range []string{".", "mine", "locked", "locked/f", "shared/mine", "d", "d/f"} {
		must(t, os.Chown(filepath.Join(dir, p), nobody, nobody))
	}
	for p, mode := range map[string]os.FileMode{"locked": 0o555, "shared": 0o777 | os.ModeSticky, "secret": 0o600} {
		must(t, os.Chmod(filepath.Join(dir, p), mode))
	}
	binary := filepath.Join(top, "test")
	copyProgram(t, os.Args[0], binary)
	cmd := exec.Command(binary, "-test.run", "^TestAllowedUser$", "-test.v")
	cmd.Dir = top
	cmd.Env = append(os.Environ(), userEnv+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestAllowedUser") {
		t.Errorf("%v\n%s", err, out)
	}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	src, err := os.Open(from)
	must(t, err)
	defer src.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	must(t, err)
	_, err = io.Copy(f, src)
	must(t, errors.Join(err, f.Close()))
}

// TestAllowedUser is what TestAllowed runs.
func TestAllowedUser(t *testing.T) {
	dir := os.Getenv(userEnv)
	if dir == "" {
		t.Skip("it is run by TestAllowed")
	}
	for name, c := range map[string]struct {
		call func(*guest) error
		want error
	}{
		"own file":                       {func(g *guest) error { return g.write("mine", "new", -1) }, nil},
		"other's file":                   {func(g *guest) error { return g.write("theirs", "new", -1) }, nil},
		"other's file that is secret":    {func(g *guest) error { return g.write("secret", "new", -1) }, nil},
		"other's file moved":             {func(g *guest) error { return g.mv("theirs", "d/t") }, nil},
		"time of own":                    {func(g *guest) error { return g.touch("mine") }, nil},
		"time of other's":                {func(g *guest) error { return g.touch("theirs") }, capabilities.EPERM},
		"time of other's directory":      {func(g *guest) error { return g.touch("shared") }, capabilities.EPERM},
		"new in locked directory":        {func(g *guest) error { return g.write("locked/n", "x", 0) }, capabilities.EACCES},
		"changed in locked directory":    {func(g *guest) error { return g.write("locked/f", "x", 0) }, capabilities.EACCES},
		"moved from locked directory":    {func(g *guest) error { return g.mv("locked/f", "n") }, capabilities.EACCES},
		"locked directory moved":         {func(g *guest) error { return g.mv("locked", "n") }, capabilities.EACCES},
		"directory in locked directory":  {func(g *guest) error { return g.mkdir("locked/n") }, capabilities.EACCES},
		"new in shared directory":        {func(g *guest) error { return g.write("shared/n", "x", 0) }, nil},
		"own in shared directory":        {func(g *guest) error { return g.write("shared/mine", "x", 0) }, nil},
		"other's in shared directory":    {func(g *guest) error { return g.write("shared/f", "x", 0) }, capabilities.EPERM},
		"other's removed from shared":    {func(g *guest) error { return g.rm("shared/f") }, capabilities.EPERM},
		"other's moved out of shared":    {func(g *guest) error { return g.mv("shared/f", "n") }, capabilities.EPERM},
		"new below a directory of a new": {func(g *guest) error { return errorsOf(g.mkdir("d/n"), g.write("d/n/f", "x", 0)) }, nil},
	} {
		j := &journal{name: "store"}
		h, err := OpenJournaled(dir, j)
		must(t, err)
		left := change(t, h, c.call)
		before := image(t, filepath.Join(dir, "shared"))
		tries := map[string]error{"checked": almost(t, h, left)}
		if c.want != nil {
			tries["tried"] = open(t, dir).Apply(t.Context(), left)
		}
		for how, err := range tries {
			if !errors.Is(err, c.want) || (err != nil) != (c.want != nil) || errors.Is(err, ErrTorn) {
				t.Errorf("%s, %s: %v, want %v", name, how, err, c.want)
			}
		}
		if names := stages(t, dir); len(names) != 0 {
			t.Errorf("%s: left %q", name, names)
		}
		sameImage(t, image(t, filepath.Join(dir, "shared")), before)
		must(t, h.Close())
	}
}

// almost goes as far as to where a change would be committed.
func almost(t *testing.T, h *HostDir, c *Change) error {
	t.Helper()
	s, err := h.stage(t.Context(), c)
	if err != nil {
		return err
	}
	defer s.Close()
	must(t, s.Lock(t.Context()))
	return s.Check(t.Context())
}

// mounted mounts a file system of its own on a folder, or skips the test.
func mounted(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	if err := syscall.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Skipf("file systems cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	must(t, os.Chmod(dir, 0o755))
}

// A folder in the volume can be another file system: what is moved between them is
// copied. The folder itself stays, and so do special files in it.
func TestMounted(t *testing.T) {
	for _, how := range []string{"journaled", "plain"} {
		t.Run(how, func(t *testing.T) {
			commit := func(_ *journal, h *HostDir, c *Change) error { return h.Apply(t.Context(), c) }
			if how == "journaled" {
				commit = func(j *journal, h *HostDir, c *Change) error { return j.commit(t.Context(), h, c) }
			}
			dir, j := t.TempDir(), &journal{name: "store"}
			mounted(t, filepath.Join(dir, "far"))
			mounted(t, filepath.Join(dir, "far2"))
			plant(t, dir, map[string]string{
				"f": "near", "l": "->f", "d/x": "x", "far/f": "far", "far/l": "->f", "far/d/x": "x", "far/gone": "g", "far/same": "s", "far2/f": "f",
			})
			must(t, syscall.Mkfifo(filepath.Join(dir, "far/pipe"), 0o644))
			h, err := OpenDir(dir)
			if how == "journaled" {
				h, err = OpenJournaled(dir, j)
			}
			must(t, err)
			defer h.Close()
			must(t, commit(j, h, change(t, h, func(g *guest) error {
				return errorsOf(
					g.mv("f", "tmp"), g.mv("far/f", "f"), g.mv("tmp", "far/f"), g.mv("l", "far/k"), g.mv("far/l", "k"),
					g.mv("far/d", "e"), g.mv("d", "far/e"), g.rm("far/gone"), g.write("far/same", "S", 0), g.write("far/new", "n", 0),
				)
			})))
			want := t.TempDir()
			plant(t, want, map[string]string{
				"f": "far", "far/f": "near", "far/k": "->f", "k": "->f", "e/x": "x", "far/e/x": "x", "far/same": "S", "far/new": "n", "far2/f": "f",
			})
			must(t, syscall.Mkfifo(filepath.Join(want, "far/pipe"), 0o644))
			sameImage(t, image(t, dir), image(t, want))
			for name, c := range map[string]struct {
				call func(*guest) error
				want error
			}{
				"mount point moved": {func(g *guest) error { return g.mv("far2", "n") }, capabilities.EBUSY},
				"mount point gone":  {func(g *guest) error { return errorsOf(g.rm("far2/f"), g.rm("far2")) }, capabilities.EBUSY},
				"pipe removed":      {func(g *guest) error { return g.rm("far/pipe") }, capabilities.EXDEV},
				"pipe moved away":   {func(g *guest) error { return g.mv("far/pipe", "n") }, capabilities.EXDEV},
				"pipe moved":        {func(g *guest) error { return g.mv("far/pipe", "far/n") }, capabilities.EXDEV},
			} {
				err := commit(j, h, change(t, h, c.call))
				if !errors.Is(err, c.want) || errors.Is(err, ErrTorn) || j.left() != 0 {
					t.Errorf("%s: %v, want %v", name, err, c.want)
				}
				sameImage(t, image(t, dir), image(t, want))
			}
		})
	}
}

// The folder is on another file system than what keeps its intents.
func TestFolderOnAnotherFileSystem(t *testing.T) {
	const memory = "/dev/shm"
	if fi, err := os.Stat(memory); err != nil || !fi.IsDir() {
		t.Skip("there is no " + memory)
	}
	scratch, err := os.MkdirTemp(memory, "volume")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(scratch)) })
	state := t.TempDir()
	a, err := os.Stat(scratch)
	must(t, err)
	b, err := os.Stat(state)
	must(t, err)
	if deviceOf(a) == deviceOf(b) {
		t.Skip("temporary files are in memory too")
	}
	template, end := filepath.Join(state, "template"), t.TempDir()
	plant(t, template, lively)
	plant(t, end, livelyAfter)
	j := journalFile{filepath.Join(state, "journal")}
	for i, killed := range []bool{false, true} {
		dir := filepath.Join(scratch, "v"+string(rune('0'+i)))
		must(t, os.CopyFS(dir, os.DirFS(template)))
		must(t, os.WriteFile(j.path, nil, 0o600))
		h, err := OpenJournaled(dir, j)
		must(t, err)
		g := &guest{New(h, Options{Budget: ample()})}
		livelyCall(t, g)
		c, err := g.Change()
		must(t, err)
		s, err := h.stage(t.Context(), c)
		must(t, err)
		must(t, s.Lock(t.Context()))
		must(t, s.Check(t.Context()))
		must(t, j.add(journalLine{Intent: Intent{ID: "1", Data: s.Intent()}}))
		if !killed {
			must(t, s.Publish(t.Context()))
		}
		s.Close()
		must(t, g.Close())
		must(t, h.Settle(t.Context()))
		sameImage(t, image(t, dir), image(t, end))
		list, err := j.Pending(t.Context())
		if err != nil || len(list) != 0 {
			t.Errorf("pending %v, %v", list, err)
		}
		must(t, h.Close())
	}
}
