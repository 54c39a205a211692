package crash

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/internal/courier"
	"github.com/sandboxd/sandboxd/runtime"
)

const childEnv = "CRASH_TEST_CHILD"

// job is what a process of its own does.
type job struct {
	Place   place
	Do      string         // one of jobs
	Kill    int            // at which of its steps the process kills itself; 0: at none
	Count   int            // calls of each writer; 0: until it is killed
	Writers map[string]int // with the number of the last call of each
	Sink    string         // file that messages are delivered to
	Args    []string
}

var jobs = map[string]func(context.Context, job, *world, *steps) error{
	"number": numberCalls, "write": writeMany, "call": callOnce, "undo": undoOne,
}

// steps counts, and kills this process at one of them.
type steps struct {
	at int64
	n  atomic.Int64
}

func (s *steps) step(string) error {
	if s.n.Add(1) == s.at {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			return err
		}
		select {} // it takes a moment
	}
	return nil
}

func runJob(ctx context.Context, text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	s := &steps{at: int64(j.Kill)}
	w, err := j.Place.open(ctx, hooks{step: s.step})
	if err != nil {
		return err
	}
	return errors.Join(jobs[j.Do](ctx, j, w, s), w.close(ctx))
}

// newCourier returns what delivers messages, through the same steps.
func (j job) newCourier(w *world, s *steps) *courier.Courier {
	sink := courier.NewFileSink(j.Sink)
	return courier.New(courier.Options{
		Store: &hooked{w.store, s.step},
		Sink:  func(string, string) (courier.Sink, bool) { return sink, true },
		Poll:  20 * time.Millisecond, Lease: 3 * time.Second,
	})
}

// numberCalls has each writer make its numbered calls and say which ones were
// answered. With one writer messages are delivered after each call; with several,
// at any time.
func numberCalls(ctx context.Context, j job, w *world, s *steps) error {
	c := j.newCourier(w, s)
	if len(j.Writers) > 1 {
		courier, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); c.Run(courier) }()
		defer func() { stop(); <-ended }()
	}
	errs := make(chan error, len(j.Writers))
	for writer, last := range j.Writers {
		go func() {
			var err error
			for i := last + 1; err == nil && (j.Count == 0 || i <= last+j.Count); i++ {
				if err = numberedCall(ctx, w, writer, i); err == nil && len(j.Writers) == 1 {
					err = c.Drain(ctx)
				}
			}
			errs <- err
		}()
	}
	var all []error
	for range j.Writers {
		all = append(all, <-errs)
	}
	fmt.Println("steps", s.n.Load())
	return errors.Join(all...)
}

// numberedCall makes one call, again as long as others are in its way.
func numberedCall(ctx context.Context, w *world, writer string, i int) error {
	for {
		_, r := w.call(ctx, "do", numbered(writer, i), runtime.Notify{})
		switch {
		case r.Outcome == runtime.Conflict:
			continue
		case r.Outcome != runtime.OK || !r.Committed || r.Err != nil:
			return fmt.Errorf("call %s-%d: %s, %w", writer, i, r.Outcome, r.Err)
		}
		fmt.Println("answered", writer, i)
		return nil
	}
}

// process is one that was started.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr bytes.Buffer
}

func start(t testing.TB, j job) *process {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text), "CRASH_TEST_PROGRAMS="+programs)
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	p.lines.Buffer(nil, 1<<20)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// wait takes all that the process says until it ends, and returns whether it
// ended by itself.
func (p *process) wait(said func(fields []string)) bool {
	p.t.Helper()
	for p.lines.Scan() {
		if f := strings.Fields(p.lines.Text()); len(f) > 0 && said != nil {
			said(f)
		}
	}
	err := p.cmd.Wait()
	if p.stderr.Len() > 0 {
		p.t.Errorf("process: %s", p.stderr.String())
	}
	return err == nil
}
