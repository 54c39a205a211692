package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sandboxd/sandboxd/runtime"
)

// progress says that something takes its time: on stderr where a person watches
// it, and for commands that stay up or run long, where nobody does too.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	told     strings.Builder
}

func newProgress(stderr io.Writer) *progress {
	p := &progress{w: io.Discard, terminal: isTerminal(stderr)}
	if p.terminal {
		p.w = stderr
	}
	return p
}

// always tells it on stderr even where it is no terminal.
func (p *progress) always(stderr io.Writer) { p.w = stderr }

// Write passes a line on.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told.Write(b)
	return p.w.Write(b)
}

// built reports whether the building of a package was told.
func (p *progress) built(pkg string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.told.String(), "building "+pkg+" ")
}

// worthTelling is how long a module may take to compile, or to be read from the
// cache, before it is told.
const worthTelling = 300 * time.Millisecond

// compiling tells that a module is compiled, once it takes long. Where nobody
// watches, one line a package is enough.
func (p *progress) compiling() runtime.Observer {
	return runtime.Observer{Compile: func(pkg string, bytes int) func() {
		if !p.terminal && p.built(pkg) {
			return nil
		}
		told := make(chan struct{})
		t := time.AfterFunc(worthTelling, func() {
			defer close(told)
			fmt.Fprintf(p, "compiling %s, %.1f MB\n", pkg, float64(bytes)/1e6)
		})
		return func() {
			if !t.Stop() {
				<-told
			}
		}
	}}
}
