//go:build unix

package volume

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// journalFile keeps intents in a file, durably: one line for each that was
// committed, and one for each that is done.
type journalFile struct{ path string }

type journalLine struct {
	Intent Intent
	Done   string
}

func (j journalFile) Owner() string { return "file" }

func (j journalFile) Pending(context.Context) ([]Intent, error) {
	f, err := os.Open(j.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []Intent
	for in := json.NewDecoder(f); ; {
		var l journalLine
		switch err := in.Decode(&l); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // the last line may be torn: it was not committed
			return list, nil
		case err != nil:
			return nil, err
		case l.Done != "":
			list = list[1:]
		default:
			list = append(list, l.Intent)
		}
	}
}

func (j journalFile) Done(_ context.Context, id string) error { return j.add(journalLine{Done: id}) }

func (j journalFile) add(l journalLine) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// numbered is a call that gives all files the number n, makes one of two that take
// turns and removes the other, and moves a directory.
func numbered(g *guest, n int) error {
	text, odd, even := strconv.Itoa(n), strconv.Itoa(n%2), strconv.Itoa((n+1)%2)
	return errorsOf(
		g.write("f0", text, -1), g.write("d/f1", text, -1), g.write("d/e/f2", text, -1),
		g.write("only"+odd, text, 0), g.rm("only"+even),
		g.mv("m"+even, "m"+odd), g.write("m"+odd+"/f3", text, -1),
	)
}

// number returns which call was the last, by all that it leaves.
func number(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "f0"))
	must(t, err)
	n, err := strconv.Atoi(string(b))
	must(t, err)
	odd := strconv.Itoa(n % 2)
	want := map[string]string{
		"f0": string(b), "d/f1": string(b), "d/e/f2": string(b), "only" + odd: string(b), "m" + odd + "/f3": string(b), "m" + odd + "/other": "o",
	}
	end := t.TempDir()
	plant(t, end, want)
	sameImage(t, visible(image(t, dir)), image(t, end))
	return n
}

const childEnv = "VOLUME_TEST_CHILD"

// TestKilledChild is the process that is killed: by itself at an operation, or by
// the test. It commits one numbered call after another and says so.
func TestKilledChild(t *testing.T) {
	dir, k, ok := strings.Cut(os.Getenv(childEnv), " ")
	if !ok {
		t.Skip("it is run by TestKilled")
	}
	kill, err := strconv.Atoi(k)
	must(t, err)
	j := journalFile{filepath.Join(dir, "journal")}
	h, err := OpenJournaled(filepath.Join(dir, "v"), j)
	must(t, err)
	must(t, h.Settle(t.Context()))
	n, ops := number(t, filepath.Join(dir, "v")), 0
	h.disk.fault = func(string, string) error {
		if ops++; ops == kill {
			must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
			select {}
		}
		return nil
	}
	for {
		n++
		g := &guest{New(h, Options{Budget: ample()})}
		must(t, numbered(g, n))
		c, err := g.Change()
		must(t, err)
		s, err := h.stage(t.Context(), c)
		must(t, err)
		must(t, s.Lock(t.Context()))
		must(t, s.Check(t.Context()))
		must(t, j.add(journalLine{Intent: Intent{ID: strconv.Itoa(n), Data: s.Intent()}}))
		fmt.Println("committed", n)
		must(t, s.Publish(t.Context()))
		s.Close()
		must(t, j.Done(t.Context(), strconv.Itoa(n)))
		must(t, g.Close())
	}
}

// child runs a child until it is killed: at an operation or, if that is 0, after a
// time. It returns the last call of which it said that it was committed.
func child(t *testing.T, dir string, at int, after time.Duration) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledChild$", "-test.v")
	// It cannot clean up after itself: what it leaves goes with the folder.
	cmd.Env = append(os.Environ(), childEnv+"="+dir+" "+strconv.Itoa(at), "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() { _ = cmd.Wait() }() // it was killed
	last, lines := 0, bufio.NewScanner(out)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "committed ")
		if ok {
			last, err = strconv.Atoi(text)
			must(t, err)
		} else if strings.Contains(lines.Text(), "FAIL") {
			t.Errorf("child: %s", lines.Text())
		}
		if after > 0 && last > 0 {
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
			after = 0
		}
	}
	return last
}

// TestKilled kills a process at each of its operations, and at random moments.
// What it said was committed is in place afterwards, whole, and at most one more.
func TestKilled(t *testing.T) {
	dir := quickDir(t)
	v := filepath.Join(dir, "v")
	plant(t, v, map[string]string{"f0": "0", "d/f1": "0", "d/e/f2": "0", "only0": "0", "m0/f3": "0", "m0/other": "o"})
	must(t, os.WriteFile(filepath.Join(dir, "journal"), nil, 0o600))
	now := 0
	check := func(committed int) {
		t.Helper()
		h, err := OpenJournaled(v, journalFile{filepath.Join(dir, "journal")})
		must(t, err)
		defer h.Close()
		must(t, h.Settle(t.Context()))
		n := number(t, v)
		if committed = max(committed, now); n != committed && n != committed+1 {
			t.Errorf("%d is there, %d was committed", n, committed)
		}
		now = n
		if names := h.Abandoned(); len(names) > 0 {
			t.Errorf("abandoned %q", names)
		}
	}
	random := 40
	if testing.Short() {
		random = 5
	}
	for k := 1; k < 400; k += every(13) {
		check(child(t, dir, k, 0))
	}
	for range random {
		check(child(t, dir, 0, time.Duration(rand.IntN(20_000))*time.Microsecond))
	}
	if now < random {
		t.Errorf("%d calls: the test does not reach what it should", now)
	}
}
