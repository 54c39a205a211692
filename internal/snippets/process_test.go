package snippets

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// process is a daemon that was started with a command line of ours.
type process struct {
	cmd   *exec.Cmd
	lines chan string // of its standard error
	ended chan error
}

// run starts a program with the arguments that a file below deploy gives it, its
// state and cache in folders of the test and its configuration one that serves
// guests/notes, and waits until it is ready.
func run(t *testing.T, path string, args []string, state, cacheFolder string) *process {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "sandboxd.yaml")
	text := fmt.Sprintf("packages: [{source: %q}]\nlisten: {http: 127.0.0.1:0}\n", filepath.Join(clone, "guests", "notes"))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ours := map[string]string{"/etc/sandboxd/sandboxd.yaml": conf, state: filepath.Join(dir, "state"), cacheFolder: program.Cache}
	line := make([]string, len(args))
	for i, a := range args {
		line[i] = a
		if filepath.IsAbs(a) {
			if line[i] = ours[a]; line[i] == "" {
				t.Fatalf("%s: not a path that the deployment has", a)
			}
		}
	}
	p := &process{cmd: exec.Command(path, line...), lines: make(chan string), ended: make(chan error, 1)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill() // one that has ended is not there any more
		for range p.lines {  // what it says is read to its end
		}
	})
	go func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.lines <- s.Text()
		}
		p.ended <- p.cmd.Wait()
		close(p.lines)
	}()
	address := regexp.MustCompile(`http://[^/ ]+`).FindString(p.until(t, "listening: "))
	p.ready(t, address+"/readyz")
	return p
}

// until waits for a line that contains a text, and returns it.
func (p *process) until(t *testing.T, text string) string {
	t.Helper()
	var said []string
	for late := time.After(patience); ; {
		select {
		case line, more := <-p.lines:
			said = append(said, line)
			if strings.Contains(line, text) {
				return line
			}
			if more {
				continue
			}
		case <-late:
		}
		t.Fatalf("never said %q:\n%s", text, strings.Join(said, "\n"))
	}
}

// ready waits until the daemon takes calls. What it says meanwhile is passed
// over.
func (p *process) ready(t *testing.T, url string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		if r, err := http.Get(url); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case _, more := <-p.lines:
			if !more {
				t.Fatalf("ended: %v", <-p.ended)
			}
		case <-late:
			t.Fatalf("%s: never ready", url)
		}
	}
}

// stop sends a signal and waits for a clean end.
func (p *process) stop(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	for late := time.After(patience); ; {
		select {
		case <-p.lines:
		case err := <-p.ended:
			if err != nil {
				t.Errorf("ended: %v", err)
			}
			return
		case <-late:
			t.Fatal("did not end")
		}
	}
}
