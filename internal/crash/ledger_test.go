package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/outbox"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/courier"
	"github.com/sandboxd/sandboxd/runtime"
)

// volumesOfGuest are where the guest sees its volumes.
var volumesOfGuest = []string{"/data", "/disk"}

// numbered is a call that leaves its number in all that a call can leave: keys,
// files of both volumes (one that is new, one that is replaced, one that grows and
// one that goes), and a message.
func numbered(writer string, i int) []operation {
	id := fmt.Sprintf("%s-%d", writer, i)
	ops := []operation{
		{Do: "say", Text: id},
		{Do: "increment", Name: "total", N: 1},
		{Do: "put", Name: "own/" + id, Text: id},
		{Do: "append", Name: "log/" + writer, Text: id + "\n"},
	}
	for _, v := range volumesOfGuest {
		dir := v + "/" + writer
		ops = append(
			ops,
			operation{Do: "grow", Name: dir + "/log", Text: id + "\n"},
			operation{Do: "write", Name: dir + "/last", Text: id},
			operation{Do: "write", Name: fmt.Sprint(dir, "/turn", i%2), Text: id},
			operation{Do: "remove", Name: fmt.Sprint(dir, "/turn", (i+1)%2)},
		)
	}
	return append(ops, operation{Do: "send", Name: id, Text: id})
}

// left is what a writer's calls up to i leave, as looking at it says.
func left(writer string, i int) (ops []operation, want []string) {
	see := func(do, name, text string) {
		ops, want = append(ops, operation{Do: do, Name: name}), append(want, text)
	}
	var log strings.Builder
	for n := range i {
		fmt.Fprintf(&log, "%s-%d\n", writer, n+1)
	}
	some := func(text string) string {
		if i == 0 {
			return "-"
		}
		return "=" + text
	}
	id := fmt.Sprintf("%s-%d", writer, i)
	see("get", "log/"+writer, some(log.String()))
	for _, v := range volumesOfGuest {
		dir := v + "/" + writer
		see("read", dir+"/log", some(log.String()))
		see("read", dir+"/last", some(id))
		see("read", fmt.Sprint(dir, "/turn", i%2), some(id))
		see("list", dir, some(fmt.Sprint("last log turn", i%2)))
	}
	return ops, want
}

// ledger is what is known of the calls of writers that are killed.
type ledger struct {
	place
	sink    string
	last    map[string]int // number of each writer's last call that is there
	final   map[string]int // lines of the sink for each message whose delivery is on record
	open    *world         // that looks; nil: the next one is opened
	checks  int
	kills   int
	calls   int // that were answered
	forward int // of which it was found out later that they are there
}

func newLedger(t *testing.T, p place, writers ...string) *ledger {
	l := &ledger{place: p, sink: filepath.Join(p.State, "sink.jsonl"), last: map[string]int{}, final: map[string]int{}}
	for _, w := range writers {
		l.last[w] = 0
	}
	t.Cleanup(func() { l.close(t) })
	return l
}

// job returns one of some of the writers.
func (l *ledger) job(writers ...string) job {
	j := job{Place: l.place, Do: "number", Sink: l.sink, Writers: map[string]int{}}
	for _, w := range writers {
		j.Writers[w] = l.last[w]
	}
	return j
}

// whole runs a process that makes so many calls, and returns how many steps
// these took.
func (l *ledger) whole(t *testing.T, count int, writers ...string) (n int) {
	t.Helper()
	j := l.job(writers...)
	j.Count = count
	answered := map[string]int{}
	if !start(t, j).wait(l.hear(answered, nil, func(steps int) { n = steps })) {
		t.Fatal("the process did not end well")
	}
	l.check(t, answered)
	return n
}

// hear returns what takes the lines of a process.
func (l *ledger) hear(answered map[string]int, mu sync.Locker, steps func(int)) func([]string) {
	return func(f []string) {
		n, err := strconv.Atoi(f[len(f)-1])
		if err != nil {
			return
		}
		switch {
		case f[0] == "steps" && steps != nil:
			steps(n)
		case f[0] == "answered":
			if mu != nil {
				mu.Lock()
				defer mu.Unlock()
			}
			answered[f[1]] = n
			l.calls++
		}
	}
}

// killedAt runs one writer until one of its steps, and checks.
func (l *ledger) killedAt(t *testing.T, writer string, step int) {
	t.Helper()
	j := l.job(writer)
	j.Kill = step
	answered := map[string]int{}
	start(t, j).wait(l.hear(answered, nil, nil))
	l.kills++
	l.check(t, answered)
}

// killedUnderLoad runs all writers, in two processes, and kills these at random
// moments, after their first answer.
func (l *ledger) killedUnderLoad(t *testing.T, groups ...[]string) {
	t.Helper()
	answered := map[string]int{}
	var mu sync.Mutex
	sideBySide(len(groups), func(i int) {
		p, hear, armed := start(t, l.job(groups[i]...)), l.hear(answered, &mu, nil), false
		p.wait(func(f []string) {
			hear(f)
			if !armed {
				armed = true
				time.AfterFunc(rand.N(80*time.Millisecond), func() { _ = p.cmd.Process.Kill() })
			}
		})
	})
	l.kills += len(groups)
	l.check(t, answered)
}

// reader returns an engine that has seen some of the kills, or a new one.
func (l *ledger) reader(t *testing.T) *world {
	t.Helper()
	if l.checks++; l.checks%4 == 0 {
		l.close(t)
	}
	if l.open == nil {
		w, err := l.place.open(t.Context(), hooks{})
		if err != nil {
			t.Fatal(err)
		}
		l.open = w
	}
	return l.open
}

func (l *ledger) close(t *testing.T) {
	t.Helper()
	if l.open == nil {
		return
	}
	if err := l.open.close(context.Background()); err != nil {
		t.Error(err)
	}
	l.open = nil
}

// check demands that what was answered is there, nothing else
// but for one call of each writer that got no answer, and all of it whole.
func (l *ledger) check(t *testing.T, answered map[string]int) {
	t.Helper()
	w := l.reader(t)
	saw, _ := w.must(t, "look", operation{Do: "scan", Name: "own/", To: "own0"}, operation{Do: "get", Name: "total"})
	there := map[string][]int{}
	for line := range strings.Lines(saw[0]) {
		_, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		writer, n, _ := strings.Cut(id, "-")
		i, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		there[writer] = append(there[writer], i)
	}
	total := 0
	for writer, before := range l.last {
		answer := max(before, answered[writer])
		is := len(there[writer])
		if is != answer && is != answer+1 {
			t.Errorf("%s: %d calls are there, %d were answered", writer, is, answer)
		}
		if is > answer {
			l.forward++
		}
		slices.Sort(there[writer])
		for i, n := range there[writer] {
			if n != i+1 {
				t.Fatalf("%s: calls %v", writer, there[writer])
			}
		}
		ops, want := left(writer, is)
		if got, _ := w.must(t, "look", ops...); !slices.Equal(got, want) {
			t.Errorf("%s: after %d calls %q, want %q", writer, is, got, want)
		}
		l.last[writer] = is
		total += is
	}
	if want := "=" + strconv.Itoa(total); saw[1] != want && total > 0 {
		t.Errorf("total %s, want %s", saw[1], want)
	}
	l.checkRecords(t, w.store)
	l.checkMessages(t, w.store)
}

// ids returns those of the calls that are there.
func (l *ledger) ids() []string {
	var ids []string
	for w, n := range l.last {
		for i := range n {
			ids = append(ids, fmt.Sprintf("%s-%d", w, i+1))
		}
	}
	return ids
}

// checkRecords demands one record of each call.
func (l *ledger) checkRecords(t *testing.T, s store.Store) {
	t.Helper()
	records, err := s.Records(t.Context(), "", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range records {
		var saw []string
		if err := json.Unmarshal(r.Data, &saw); err != nil {
			t.Fatal(err)
		}
		seen[saw[0]]++
	}
	for _, id := range l.ids() {
		if seen[id] != 1 {
			t.Errorf("call %s has %d records", id, seen[id])
		}
		delete(seen, id)
	}
	if len(seen) > 0 {
		t.Errorf("records of calls that are not there: %v", seen)
	}
}

// checkMessages demands a message of each call, and that none was delivered after
// that was on record.
func (l *ledger) checkMessages(t *testing.T, s store.Store) {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := l.delivered(t)
	space := store.Space{Principal: runtime.LocalPrincipal, Package: "steps", Area: store.AreaOutbox}
	for _, id := range l.ids() {
		item, ok, err := outbox.Load(t.Context(), snap, space, "hooks.example.com", id)
		if err != nil || !ok {
			t.Fatalf("message %s: %v, %v", id, ok, err)
		}
		if n, final := l.final[id]; final && lines[id] != n {
			t.Errorf("message %s was delivered %d times, and %d times when that was on record", id, lines[id], n)
		}
		if item.State == outbox.StateDelivered {
			if l.final[id] = lines[id]; lines[id] == 0 {
				t.Errorf("message %s is delivered on record only", id)
			}
		}
		delete(lines, id)
	}
	if len(lines) > 0 {
		t.Errorf("messages of calls that are not there: %v", lines)
	}
}

// delivered returns how often each message is in the sink.
func (l *ledger) delivered(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(l.sink)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for text := range strings.Lines(string(b)) {
		var line courier.Line
		if json.Unmarshal([]byte(text), &line) != nil {
			continue // cut off by a crash
		}
		if string(line.Body) != line.Key {
			t.Errorf("message %s says %q", line.Key, line.Body)
		}
		lines[line.Key]++
	}
	return lines
}

// finish delivers what is left, and demands that nothing of all the commits is in
// the way: no stage in a folder, no redo in the store.
func (l *ledger) finish(t *testing.T, writers ...string) {
	t.Helper()
	for len(l.final) < len(l.ids()) { // those whose process was killed wait for its lease
		time.Sleep(200 * time.Millisecond)
		l.whole(t, 1, writers[0])
	}
	l.whole(t, 3, writers[0]) // what one leaves the next one removes
	s, err := l.openStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	spaces, err := s.Spaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, space := range spaces {
		if space.Area != store.AreaRedo {
			continue
		}
		if u, err := s.Usage(t.Context(), space); err != nil || u.Keys > 3 { // the store's name, the folder's state, and the last intent
			t.Errorf("redo: %d keys, %v", u.Keys, err)
		}
	}
	for volume, dir := range l.Folders {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if _, known := l.last[e.Name()]; !known {
				t.Errorf("%s: %s is left over", volume, e.Name())
			}
		}
	}
	twice := 0
	for _, n := range l.final {
		twice += n - 1
	}
	t.Logf("%d kills, %d calls answered, %d there without an answer, %d messages, %d of them delivered again", l.kills, l.calls, l.forward, len(l.final), twice)
}
