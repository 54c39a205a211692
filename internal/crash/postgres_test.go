package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/pgtest"
	"github.com/sandboxd/sandboxd/runtime"
)

var bin = flag.String("postgres", "", "folder of the programs initdb and postgres, 14 or later; without it what needs a server is left out")

var schemas atomic.Int64

// onServer returns a place in a schema of its own on a server.
func onServer(t *testing.T, s *pgtest.Server, program string) place {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", fmt.Sprint("s", schemas.Add(1)))
	u.RawQuery = q.Encode()
	return place{Program: program, State: t.TempDir(), URL: u.String()}
}

func server(t *testing.T) *pgtest.Server {
	t.Helper()
	if *bin == "" {
		t.Skip("-postgres names no folder of programs (Debian: /usr/lib/postgresql/15/bin of apt-get install postgresql)")
	}
	return pgtest.Start(t, *bin)
}

// TestPostgres does on a PostgreSQL server what the other tests do on the embedded
// store.
func TestPostgres(t *testing.T) {
	s := server(t)
	t.Run("two writers in one process", func(t *testing.T) { additions["notes"].inOne(t, onServer(t, s, "notes")) })
	t.Run("two writers in two processes", func(t *testing.T) { additions["memory"].inTwo(t, onServer(t, s, "memory")) })
	t.Run("serial", func(t *testing.T) { serial(t, onServer(t, s, "steps")) })
	t.Run("undone elsewhere", func(t *testing.T) { undoneElsewhere(t, onServer(t, s, "steps")) })
	t.Run("killed", func(t *testing.T) { killed(t, onServer(t, s, "steps"), *kills/3) })
}

// TestPostgresServer kills the server under load, starts it anew, and cuts off all
// who are connected.
func TestPostgresServer(t *testing.T) {
	s := server(t)
	cutOff := func() {
		s.Run(strings.NewReader("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"), "psql", "--quiet")
	}
	for name, harm := range map[string]func(){
		"killed": func() { s.Kill(); s.Restart() }, "started anew": s.Restart, "cut off": cutOff,
	} {
		t.Run(name, func(t *testing.T) { harmed(t, onServer(t, s, "steps"), harm) })
	}
}

// harmed has four writers make their calls while harm is done, each time so many
// were answered. What comes of it is known of each call in the end.
func harmed(t *testing.T, p place, harm func()) {
	const each = 8
	rounds := max(1, *kills/20)
	l := newLedger(t, p, "a", "b", "c", "d")
	w := p.opened(t, hooks{})
	answered := map[string]int{}
	failed, unknown := 0, 0
	var mu sync.Mutex
	some := make(chan struct{}, len(l.last)*rounds*each)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers sync.WaitGroup
	for writer := range l.last {
		writers.Go(func() {
			for i := 1; ctx.Err() == nil; i++ {
				f, u, err := certainly(ctx, w, writer, i)
				mu.Lock()
				failed, unknown = failed+f, unknown+u
				if err == nil {
					answered[writer] = i
				}
				mu.Unlock()
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				select {
				case some <- struct{}{}:
				default:
				}
			}
		})
	}
	for range rounds {
		for range each {
			<-some
		}
		harm()
	}
	for range 2 * each {
		<-some
	}
	cancel()
	writers.Wait()
	before := l.forward
	l.check(t, answered)
	t.Logf("%d calls were answered, %d failed and were made again, of %d it had to be found out, %d there without an answer",
		len(l.ids()), failed, unknown, l.forward-before)
}

// certainly makes a numbered call until it is certain that it is there. One that
// failed left nothing, so that it can be made again.
func certainly(ctx context.Context, w *world, writer string, i int) (failed, unknown int, err error) {
	for ctx.Err() == nil {
		_, r := w.call(ctx, "do", numbered(writer, i), runtime.Notify{})
		switch {
		case r.Outcome == runtime.OK:
			return failed, unknown, r.Err
		case errors.Is(r.Err, store.ErrUnknown):
			unknown++
			there, err := isThere(ctx, w, fmt.Sprintf("own/%s-%d", writer, i))
			if err != nil || there {
				return failed, unknown, err
			}
		case r.Outcome == runtime.HostError, r.Outcome == runtime.Conflict:
			failed++
		default:
			return failed, unknown, fmt.Errorf("call: %s, %w", r.Outcome, r.Err)
		}
	}
	return failed, unknown, context.Cause(ctx)
}

func isThere(ctx context.Context, w *world, key string) (bool, error) {
	for ctx.Err() == nil {
		saw, r := w.call(ctx, "look", []operation{{Do: "get", Name: key}}, runtime.Notify{})
		if r.Outcome == runtime.OK {
			return saw[0] != "-", nil
		}
	}
	return false, context.Cause(ctx)
}
