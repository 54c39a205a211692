package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// once is a fate that does something to the next commit alone.
type once struct {
	mu     sync.Mutex
	armed  bool
	commit bool // the commit was sent
	client func(message []byte) verdict
	server func() verdict
}

func (o *once) arm() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.armed, o.commit = true, false
}

func (o *once) fate() fate {
	return func(fromClient bool, message []byte) verdict {
		o.mu.Lock()
		defer o.mu.Unlock()
		switch {
		case !o.armed:
			return deliver
		case fromClient && (bytes.Contains(message, []byte("hot")) || bytes.Contains(message, []byte("686f74"))): // a commit
			o.commit = true
			if o.client != nil {
				o.armed = false
				return o.client(bytes.Clone(message))
			}
		case !fromClient && o.commit:
			o.armed = false
			return o.server()
		}
		return deliver
	}
}

func lose() verdict { return sever }

// TestAnswerLost: the server did the commit, or did not get it, and the store
// finds out which.
func TestAnswerLost(t *testing.T) {
	server := start(t)
	for what, o := range map[string]*once{
		"answer":  {server: lose},
		"request": {client: func([]byte) verdict { return sever }},
	} {
		t.Run(what, func(t *testing.T) {
			p := newProxy(t, server)
			p.setFate(o.fate)
			s := open(t, Options{URL: p.url(fresh(server.URL()))})
			ids := map[string]bool{}
			for i := range 10 {
				id := fmt.Sprint("call ", i)
				ids[id] = true
				o.arm()
				if err := countOnce(t.Context(), s, id, "hot"); err != nil {
					t.Fatal(err)
				}
				if o.armed {
					t.Fatal("nothing was lost")
				}
			}
			exactlyOnce(t, s, ids)
		})
	}
}

// TestLateCommit: what is still on its way when the store has given another
// answer is not done.
func TestLateCommit(t *testing.T) {
	server := start(t)
	for _, c := range []struct {
		what    string
		records int
	}{{"with record", 1}, {"without record", 0}} {
		t.Run(c.what, func(t *testing.T) {
			var held []byte
			o := &once{client: func(m []byte) verdict { held = m; return sever }}
			p := newProxy(t, server)
			p.setFate(o.fate)
			url := fresh(server.URL())
			direct := open(t, Options{URL: url})
			// Simple protocol: what was held is a whole transaction, which can be sent
			// on another connection as it is.
			s := open(t, Options{URL: with(p.url(url), "default_query_exec_mode", "simple_protocol")})
			write(t, s, "first", put("other", "1"))
			late := &store.Commit{ID: "late", Time: time.Now(), Guards: []store.Guard{{Key: key("hot")}}, Writes: []store.Write{put("hot", "late")}}
			for range c.records {
				late.Records = append(late.Records, store.Record{Time: time.Now(), Data: []byte("late")})
			}
			// While it is on its way another makes its guard false.
			o.client = func(m []byte) verdict {
				held = m
				write(t, direct, "between", put("hot", "other"))
				return sever
			}
			o.arm()
			if _, err := s.Commit(t.Context(), late); !errors.Is(err, store.ErrConflict) {
				t.Fatalf("%v, want a conflict", err)
			}
			// Then the guard is true again, and the message arrives.
			write(t, direct, "after", store.Write{Key: key("hot"), Delete: true})
			if len(held) == 0 {
				t.Fatal("nothing was held")
			}
			if err := replay(t, direct, held); kindOf(err) != stale {
				t.Errorf("the late commit: %v, want it refused for its epoch", err)
			}
			if e := get(t, now(t, direct), "hot"); e.Version != 0 {
				t.Errorf("a commit that was answered as a conflict is there: %q", e.Value)
			}
			// Nothing is in the way of the next one.
			if _, err := s.Commit(t.Context(), late); err != nil {
				t.Error(err)
			}
			whole(t, s, records(t, s, c.records))
		})
	}
}

// replay sends the text of a message of the simple protocol.
func replay(t *testing.T, s *Store, message []byte) error {
	t.Helper()
	text := string(message[5 : len(message)-1])
	conn := outsider(t, s)
	_, err := conn.PgConn().Exec(t.Context(), text).ReadAll()
	return err
}

// TestUnknown: a server that is not found again leaves the outcome unknown, and
// the same ID tells it later.
func TestUnknown(t *testing.T) {
	server := start(t)
	for what, done := range map[string]bool{"done": true, "not done": false} {
		t.Run(what, func(t *testing.T) {
			p := newProxy(t, server)
			o := &once{}
			vanish := func() verdict { go p.setDown(true); return sever }
			if done {
				o.server = vanish
			} else {
				o.client = func([]byte) verdict { return vanish() }
			}
			p.setFate(o.fate)
			s := open(t, Options{URL: p.url(fresh(server.URL())), Settle: 200 * time.Millisecond})
			v := write(t, s, "first", put("k", "1"))
			c := &store.Commit{
				ID: "call", Time: time.Now(), Guards: []store.Guard{{Key: key("k"), Version: v}}, Writes: []store.Write{put("hot", "x"), put("k", "2")},
				Records: []store.Record{{Time: time.Now(), Data: []byte("call")}},
			}
			o.arm()
			if _, err := s.Commit(t.Context(), c); !errors.Is(err, store.ErrUnknown) {
				t.Fatalf("%v, want the outcome unknown", err)
			}
			if _, ok := s.unsettledWriter("call"); !ok {
				t.Error("nobody remembers the writer")
			}
			// Nothing was begun: that is known.
			if _, err := s.Commit(t.Context(), &store.Commit{ID: "next"}); err == nil || errors.Is(err, store.ErrUnknown) {
				t.Errorf("a commit that was never sent: %v", err)
			}
			p.setDown(false)
			w, err := s.Commit(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if e := get(t, now(t, s), "k"); e.Version != w || string(e.Value) != "2" {
				t.Errorf("the key is %q in version %d, the commit has %d", e.Value, e.Version, w)
			}
			if _, ok := s.unsettledWriter("call"); ok {
				t.Error("the writer is still remembered")
			}
			whole(t, s, records(t, s, 1))
		})
	}
}

// TestCutOff cuts connections at any place while calls count.
func TestCutOff(t *testing.T) {
	server := start(t)
	p := newProxy(t, server)
	url := p.url(fresh(server.URL()))
	open(t, Options{URL: url})
	var mu sync.Mutex
	p.setFate(unlucky(rand.New(rand.NewPCG(1, 2)), &mu, 8, 60))
	s := open(t, Options{URL: url, Settle: time.Minute})
	ids := load(t, s, 8, 25, func(error) bool { return false }, func() {})
	p.setFate(nil)
	p.setDown(true)
	p.setDown(false)
	exactlyOnce(t, s, ids)
}

// load lets callers count on two keys, tells of each that is done, and returns the IDs.
func load(t *testing.T, s *Store, callers, each int, tolerated func(error) bool, counted func()) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	var wg sync.WaitGroup
	for c := range callers {
		for i := range each {
			ids[fmt.Sprintf("%d-%d", c, i)] = true
		}
		wg.Go(func() {
			for i := range each {
				if err := countUntil(t.Context(), s, fmt.Sprintf("%d-%d", c, i), fmt.Sprint("hot ", (c+i)%4), tolerated); err != nil {
					t.Error(err)
					return
				}
				counted()
			}
		})
	}
	wg.Wait()
	return ids
}

// busy tolerates a server that has too much to do at once.
func busy(err error) bool {
	_, ok := errors.AsType[*BusyError](err)
	return ok
}

// TestTerminated lets an operator cut off connections while calls count.
func TestTerminated(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL())})
	admin := outsider(t, s)
	stop, done := make(chan struct{}), make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-done: // or else, on a slow machine, nobody would ever be done
			}
			_, err := admin.Exec(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = 'sandboxd' order by random() limit 3")
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	ids := load(t, s, 8, 25, busy, func() {
		select {
		case done <- struct{}{}:
		default:
		}
	})
	close(stop)
	wg.Wait()
	exactlyOnce(t, s, ids)
}

// TestKilled kills the server while calls count. What was answered is there.
func TestKilled(t *testing.T) {
	server := start(t)
	s := open(t, Options{URL: fresh(server.URL()), Settle: time.Minute})
	done := make(chan map[string]bool)
	go func() { done <- load(t, s, 8, 60, busy, func() {}) }()
	for kills := 0; ; {
		select {
		case ids := <-done:
			if kills == 0 {
				t.Error("the calls ended before the server did")
			}
			exactlyOnce(t, s, ids)
			return
		case <-time.After(150 * time.Millisecond):
			if kills < 4 {
				kills++
				server.Kill()
				server.Restart()
			}
		}
	}
}
