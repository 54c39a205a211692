package audit_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/runtime"
)

var (
	writerState = flag.String("writer-state", "", "write records into the store of this folder: what the test starts as a process of its own")
	writerName  = flag.String("writer-name", "", "the beginning of the records' call ids")
	writerCount = flag.Int("writer-count", 0, "how many records")
)

// TestWriterProcess is a process that writes. It prints the id of each record
// after it was written; every fourth record is of a call that changed nothing,
// which nobody waits for.
func TestWriterProcess(t *testing.T) {
	if *writerState == "" {
		t.Skip("started by TestSeveralProcesses only")
	}
	l := start(t, openStore(t, *writerState), audit.Options{OnError: func(err error) { t.Error(err) }})
	for i := range *writerCount {
		id := fmt.Sprintf("%s-%d", *writerName, i)
		if i%4 == 3 {
			l.Observer().CallEnd(runtime.CallInfo{ID: id}, clean)
			continue
		}
		l.Observer().Violation(runtime.CallInfo{ID: id}, violation)
		fmt.Println(id)
	}
}

func startWriter(t *testing.T, state, name string, n int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWriterProcess$", "-writer-state="+state, "-writer-name="+name, fmt.Sprint("-writer-count=", n))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// inOrder fails where records of a writer are missing, doubled or not in the
// order in which it wrote them.
func inOrder(t *testing.T, ids []string, written map[string]int) {
	t.Helper()
	next := map[string]int{}
	for _, id := range ids {
		name, _, _ := strings.Cut(id, "-")
		if want := fmt.Sprintf("%s-%d", name, next[name]); id != want {
			t.Fatalf("record %s, want %s", id, want)
		}
		next[name]++
	}
	for name, n := range written {
		if next[name] < n {
			t.Errorf("%d records of %s, which wrote %d", next[name], name, n)
		}
	}
}

// Three processes write one log, a fourth is killed at it, and one follows it.
// Nothing is lost or doubled but what the killed one had not waited for, and every
// chain verifies.
func TestSeveralProcesses(t *testing.T) {
	const writers, n, killedAfter = 3, 100, 20
	state := t.TempDir()
	j := openStore(t, state)
	want := map[string]int{}
	ids, stop := follow(t, j)
	var cmds []*exec.Cmd
	for w := range writers {
		cmd, lines := startWriter(t, state, fmt.Sprint("w", w), n)
		cmds = append(cmds, cmd)
		want[fmt.Sprint("w", w)] = n
		go func() {
			for lines.Scan() {
			}
		}()
	}
	dying, lines := startWriter(t, state, "dying", 1<<20)
	var followed []string
	seen := map[string]int{}
	killed := make(chan string)
	go func() {
		last := ""
		for range killedAfter {
			lines.Scan()
			last = lines.Text()
		}
		if err := dying.Process.Kill(); err != nil {
			t.Error(err)
		}
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "dying-") {
				last = lines.Text()
			}
		}
		_ = dying.Wait()
		killed <- last
	}()
	for seen["w0"]+seen["w1"]+seen["w2"] < writers*n {
		id := <-ids
		followed = append(followed, id)
		name, _, _ := strings.Cut(id, "-")
		seen[name]++
	}
	go func() { // what the killed one wrote last
		for range ids {
		}
	}()
	last := <-killed
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	rs, skipped := read(t, j, audit.Filter{})
	if skipped > 0 {
		t.Errorf("%d records skipped", skipped)
	}
	all := callIDs(rs)
	inOrder(t, all, want)
	if !slices.Contains(all, last) {
		t.Errorf("the killed process said that it wrote %s, which is not there", last)
	}
	inOrder(t, followed, want)
	v, err := audit.Verify(t.Context(), j, audit.VerifyOptions{})
	if err != nil || len(v.Faults) > 0 || v.Chains != writers+1 || v.Records != len(all) {
		t.Errorf("%+v, %v", v, err)
	}
}
