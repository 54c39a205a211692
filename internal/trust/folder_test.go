package trust

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/tool"
)

// TestBadRecords: a package is never trusted anew because its record is bad.
func TestBadRecords(t *testing.T) {
	s, c := open(t), notes(t)
	admit(t, s, c)
	good := records(t, s)["notes.json"]
	tests := map[string]func(file string) error{
		"empty":         write(""),
		"not JSON":      write("notes\n"),
		"null":          write("null\n"),
		"unknown field": write(strings.Replace(good, `{"format"`, `{"more":1,"format"`, 1)),
		"field twice":   write(strings.Replace(good, `{"format"`, `{"name":"x","format"`, 1)),
		"other case":    write(strings.Replace(good, `"moduleDigest"`, `"ModuleDigest"`, 1)),
		"white space":   write(strings.Replace(good, `{"format"`, `{ "format"`, 1)),
		"two values":    write(good + "{}\n"),
		"other format":  write(strings.Replace(good, recordFormat, "sandboxd.trust/2", 1)),
		"bad digest":    write(strings.Replace(good, `"moduleDigest":"sha256:`, `"moduleDigest":"sha512:`, 1)),
		"other way":     write(strings.Replace(good, `"by":"first use"`, `"by":"magic"`, 1)),
		"other's":       write(strings.Replace(good, `"name":"notes"`, `"name":"other"`, 1)),
		"no tools":      write(good[:strings.Index(good, `"tools":`)] + `"tools":[]` + good[strings.Index(good, `,"requests":`):]),
		"folder":        func(file string) error { return os.Mkdir(file, 0o700) },
		"too large":     func(file string) error { return errors.Join(write("")(file), os.Truncate(file, maxRecord+1)) },
		"a link to one": func(file string) error {
			return errors.Join(write(good)(file+".old"), os.Symlink(file+".old", file))
		},
	}
	for n := range len(good) {
		if _, err := decode([]byte(good[:n])); err == nil {
			t.Errorf("the first %d bytes are a record", n)
		}
	}
	if goruntime.GOOS != "windows" {
		tests["everybody may write"] = func(file string) error { return errors.Join(write(good)(file), os.Chmod(file, 0o666)) }
	} else {
		delete(tests, "a link to one") // needs a privilege
	}
	for name, make := range tests {
		if err := os.RemoveAll(s.file("notes")); err != nil {
			t.Fatal(err)
		}
		if err := make(s.file("notes")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, _, admitted := s.Admit(c, Options{TrustChanges: true})
		_, approved := s.Approve(c)
		_, listed := s.Records()
		_, locked := s.Lock()
		for verb, err := range map[string]error{
			"precheck": s.Precheck(c, Options{TrustChanges: true}), "admit": admitted, "approve": approved, "records": listed, "lock": locked,
		} {
			if bad, ok := errors.AsType[*RecordError](err); !ok || bad.File != s.file("notes") {
				t.Errorf("%s: %s: %v", name, verb, err)
			}
		}
	}
}

func write(text string) func(file string) error {
	return func(file string) error { return os.WriteFile(file, []byte(text), 0o600) }
}

func TestFolderThatEverybodyMayWrite(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("mode bits say nothing about others")
	}
	s, c := open(t), notes(t)
	admit(t, s, c)
	if err := os.Chmod(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Admit(c, Options{}); !errors.Is(err, errWritable) {
		t.Errorf("admit: %v", err)
	}
	if err := s.Precheck(c, Options{}); !errors.Is(err, errWritable) {
		t.Errorf("precheck: %v", err)
	}
	c.Name = "other"
	if _, err := s.Approve(c); !errors.Is(err, errWritable) {
		t.Errorf("approve: %v", err)
	}
}

func TestStrayFiles(t *testing.T) {
	s := open(t)
	admit(t, s, notes(t))
	for _, name := range []string{"README", ".hidden.json", "notes.json~"} {
		if err := write("x")(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if rs, err := s.Records(); err != nil || len(rs) != 1 {
		t.Errorf("%d records, %v", len(rs), err)
	}
	if err := write("x")(filepath.Join(s.dir, "Notes 2.json")); err != nil {
		t.Fatal(err)
	}
	_, err := s.Records()
	if _, ok := errors.AsType[*RecordError](err); !ok {
		t.Errorf("a record without a valid name: %v", err)
	}
}

var errReplace = errors.New("no space left")

// TestWriteFails: the record is the old one or none, and nothing else stays.
func TestWriteFails(t *testing.T) {
	s, c := open(t), notes(t)
	fail := func(string, string) error { return errReplace }
	s.replace = fail
	if _, written, err := s.Admit(c, Options{}); !errors.Is(err, errReplace) || written {
		t.Errorf("first use: written %t, error %v", written, err)
	}
	s.replace = replaceFile
	admit(t, s, c)
	s.replace = fail
	changed := notes(t, func(m *tool.Manifest) { m.Version = "2" })
	if _, err := s.Approve(changed); !errors.Is(err, errReplace) {
		t.Errorf("approve: %v", err)
	}
	if all := records(t, s); len(all) != 2 || all[lockName] != "" {
		t.Errorf("the store holds %q", all)
	}
	if _, written, err := s.Admit(c, Options{}); err != nil || written {
		t.Errorf("the old record: written %t, error %v", written, err)
	}
}

var (
	child = flag.String("child", "", "what this process does to the store: admit or die")
	state = flag.String("state", "", "the state folder of a child")
	rival = flag.Bool("rival", false, "the child's package is another of the same name")
)

const goroutines = 8

// TestChild is the other processes of the tests below.
func TestChild(t *testing.T) {
	s, c := Open(*state), notes(t)
	if *rival {
		c.Source, c.Package = "/src/rival", pack(t, &c.Package.Manifest, []byte("rival"))
	}
	switch *child {
	case "":
		t.Skip("for other tests")
	case "die":
		s.replace = func(string, string) error { os.Exit(3); return nil }
		_, err := s.Approve(c)
		t.Fatal("still alive", err)
	case "admit":
		fmt.Println("ready")
		for wait := ""; wait != "go"; {
			if _, err := fmt.Scanln(&wait); err != nil {
				t.Fatal(err)
			}
		}
		written, refused := admitAtOnce(t, s, c)
		fmt.Printf("written %d refused %d\n", written, refused)
	}
}

// admitAtOnce admits a package from several goroutines.
func admitAtOnce(t *testing.T, s *Store, c Candidate) (written, refused int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			_, first, err := s.Admit(c, Options{})
			mu.Lock()
			defer mu.Unlock()
			if first {
				written++
			}
			if _, ok := errors.AsType[*ChangedError](err); ok {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return written, refused
}

// TestKilled kills a process between the writing and the renaming.
func TestKilled(t *testing.T) {
	s, c := open(t), notes(t)
	for range 2 { // before there is a record, and where one is
		before := records(t, s)["notes.json"]
		cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-child=die", "-rival", "-state="+filepath.Dir(s.dir))
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 3 {
			t.Fatalf("child: %v\n%s", err, out)
		}
		after := records(t, s)
		if after["notes.json"] != before || len(after) < 2 {
			t.Fatalf("the store holds %q", after)
		}
		if before == "" {
			admit(t, s, c)
		} else if _, written, err := s.Admit(c, Options{}); err != nil || written {
			t.Fatalf("after the kill: written %t, error %v", written, err)
		}
	}
	if _, err := s.Approve(c); err != nil {
		t.Fatal(err)
	}
	if all := records(t, s); len(all) != 2 {
		t.Errorf("what the killed process left stays: %q", all)
	}
}

// TestProcesses admits from three processes with several goroutines each: one
// first use, and where the packages are different, one winner.
func TestProcesses(t *testing.T) {
	for _, rivals := range []int{0, 1} {
		s := open(t)
		type process struct {
			cmd *exec.Cmd
			in  interface{ Write([]byte) (int, error) }
			out *strings.Builder
		}
		var ps []process
		for i := range 3 {
			args := []string{"-test.run=^TestChild$", "-child=admit", "-state=" + filepath.Dir(s.dir)}
			if i < rivals {
				args = append(args, "-rival")
			}
			cmd, out := exec.Command(os.Args[0], args...), &strings.Builder{}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdout, cmd.Stderr = out, out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ps = append(ps, process{cmd, in, out})
		}
		for _, p := range ps {
			if _, err := p.in.Write([]byte("go\n")); err != nil {
				t.Fatal(err)
			}
		}
		written, refused := 0, 0
		for _, p := range ps {
			if err := p.cmd.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, p.out)
			}
			var w, r int
			_, text, _ := strings.Cut(p.out.String(), "written ")
			if _, err := fmt.Sscanf("written "+text, "written %d refused %d", &w, &r); err != nil {
				t.Fatalf("%v\n%s", err, p.out)
			}
			written, refused = written+w, refused+r
		}
		if written != 1 {
			t.Errorf("%d rivals: %d first uses", rivals, written)
		}
		if rivals == 0 && refused != 0 || rivals == 1 && refused != goroutines && refused != 2*goroutines {
			t.Errorf("%d rivals: %d refused", rivals, refused)
		}
		if rs, err := s.Records(); err != nil || len(rs) != 1 || rs[0].By != ByFirstUse {
			t.Errorf("%d rivals: records %v, %v", rivals, rs, err)
		}
	}
}

// TestOrder holds any order of decisions against a model: the digest that is
// trusted under each name.
func TestOrder(t *testing.T) {
	base, manifest := t.TempDir(), notes(t).Package.Manifest
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		trusted := map[string]string{}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			c := Candidate{Source: "/src/notes"}
			c.Name = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "name")
			c.Package = pack(t, &manifest, []byte(rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "module")))
			digest := c.Package.ModuleDigest
			s, o := Open(dir), Options{TrustChanges: rapid.Bool().Draw(rt, "trust changes")}
			was, known := trusted[c.Name]
			fits := !known || was == digest
			switch rapid.SampledFrom([]string{"precheck", "admit", "approve"}).Draw(rt, "do") {
			case "precheck":
				if err := s.Precheck(c, Options{}); (err == nil) != fits {
					rt.Fatalf("precheck: %v, known %t, fits %t", err, known, fits)
				}
			case "admit":
				r, written, err := s.Admit(c, o)
				if (err == nil) != (fits || o.TrustChanges) || written != (err == nil && was != digest) {
					rt.Fatalf("admit %+v: written %t, error %v, known %t, fits %t", o, written, err, known, fits)
				}
				if err == nil {
					trusted[c.Name] = digest
				}
				if err == nil && r.ModuleDigest != digest {
					rt.Fatalf("admit returns the record of %s", r.ModuleDigest)
				}
			case "approve":
				if _, err := s.Approve(c); err != nil {
					rt.Fatal(err)
				}
				trusted[c.Name] = digest
			}
		}
		rs, err := Open(dir).Records()
		if err != nil || len(rs) != len(trusted) {
			rt.Fatalf("%d records, want %d, error %v", len(rs), len(trusted), err)
		}
		for _, r := range rs {
			if r.ModuleDigest != trusted[r.Name] {
				rt.Fatalf("%s: %s is trusted, want %s", r.Name, r.ModuleDigest, trusted[r.Name])
			}
		}
	})
}

// TestReadOnlyState: what is trusted can be used where nothing can be written,
// and what is not is refused.
func TestReadOnlyState(t *testing.T) {
	s, c := open(t), notes(t)
	admit(t, s, c)
	if err := os.Remove(filepath.Join(s.dir, lockName)); err != nil {
		t.Fatal(err)
	}
	// A folder where the lock should be stands for all that keeps from writing,
	// for the superuser too.
	if err := os.Mkdir(filepath.Join(s.dir, lockName), 0o500); err != nil {
		t.Fatal(err)
	}
	if _, written, err := s.Admit(c, Options{}); err != nil || written {
		t.Errorf("trusted: written %t, error %v", written, err)
	}
	c.Name = "other"
	if _, written, err := s.Admit(c, Options{}); err == nil || written {
		t.Errorf("not trusted: written %t, error %v", written, err)
	}
	if _, err := os.Stat(s.file("other")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its record: %v", err)
	}
}
