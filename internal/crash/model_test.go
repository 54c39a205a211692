package crash

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/runtime"
)

// state is what calls see: files by path and keys by "key:" and name. It is not
// changed once it is made.
type state map[string]string

// run does a call's operations one after another, alone, and returns what each of
// them sees.
func (s state) run(ops []operation) (saw []string, after state) {
	after = maps.Clone(s)
	for _, o := range ops {
		saw = append(saw, after.one(o))
	}
	return saw, after
}

// see returns what is at a name, as the guest says it.
func (s state) see(name string) string {
	if text, ok := s[name]; ok {
		return "=" + text
	}
	return "-"
}

func (s state) one(o operation) string {
	key := "key:" + o.Name
	switch o.Do {
	case "say":
		return o.Text
	case "put":
		s[key] = o.Text
	case "delete":
		delete(s, key)
	case "append":
		s[key] += o.Text
	case "increment":
		n, _ := strconv.Atoi(s[key])
		s[key] = strconv.Itoa(n + o.N)
		return s[key]
	case "get":
		return s.see(key)
	case "scan":
		return s.scan(o)
	case "write":
		s[o.Name] = o.Text
	case "grow":
		s[o.Name] += o.Text
	case "copy":
		saw := s.see(o.Name)
		if saw != "-" {
			s[o.To] = s[o.Name]
		}
		return saw
	case "remove":
		saw := s.see(o.Name)
		delete(s, o.Name)
		return saw[:1]
	case "read":
		return s.see(o.Name)
	case "list":
		var names []string
		for p := range s {
			if path.Dir(p) == o.Name {
				names = append(names, path.Base(p))
			}
		}
		slices.Sort(names)
		return "=" + strings.Join(names, " ")
	}
	return ""
}

func (s state) scan(o operation) string {
	var b strings.Builder
	left := o.N
	for _, k := range slices.Sorted(maps.Keys(s)) {
		name, isKey := strings.CutPrefix(k, "key:")
		if !isKey || name < o.Name || (o.To != "" && name >= o.To) {
			continue
		}
		fmt.Fprintf(&b, "%s=%s\n", name, s[k])
		if left--; left == 0 {
			break
		}
	}
	return b.String()
}

// answer is what a call came to. Of one whose outcome is not known nothing is
// known, not even whether it ever happened.
type answer struct {
	saw     []string
	unknown bool
}

// serially is what calls have to be as: one after another, each between when it
// was made and when it was answered.
var serially = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, output any) (bool, any) {
		saw, after := before.(state).run(input.([]operation))
		a := output.(answer)
		return a.unknown || slices.Equal(saw, a.saw), after
	},
	Equal: func(a, b any) bool { return maps.Equal(a.(state), b.(state)) },
}

// history is calls of several clients.
type history struct {
	began    time.Time
	calls    []porcupine.Operation
	outcomes map[runtime.Outcome]int
	unknown  int
}

// made adds a call. One that is known to have failed has to be as if it had never
// been made: it is left out.
func (h *history) made(client int, ops []operation, from, to time.Duration, saw []string, r *runtime.Result) {
	h.outcomes[r.Outcome]++
	o := porcupine.Operation{ClientId: client, Input: ops, Call: int64(from), Output: answer{saw: saw}, Return: int64(to)}
	switch {
	case r.Outcome == runtime.OK:
	case errors.Is(r.Err, store.ErrUnknown):
		h.unknown++
		o.Output, o.Return = answer{unknown: true}, math.MaxInt64
	default:
		return
	}
	h.calls = append(h.calls, o)
}

// check demands that there is an order.
func (h *history) check(t *testing.T) {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(serially, h.calls, time.Minute) {
	case porcupine.Ok:
	case porcupine.Illegal:
		t.Errorf("no order of these calls gives what they saw:\n%s", h)
	case porcupine.Unknown:
		t.Errorf("no order of %d calls was found within a minute", len(h.calls))
	}
}

func (h *history) String() string {
	var b strings.Builder
	for _, c := range h.calls {
		fmt.Fprintf(&b, "client %d, %d to %d: %+v saw %q\n", c.ClientId, c.Call, c.Return, c.Input, c.Output)
	}
	return b.String()
}

// TestModel shows that the search refuses what cannot be.
func TestModel(t *testing.T) {
	get, increment := []operation{{Do: "get", Name: "n"}}, []operation{{Do: "increment", Name: "n", N: 1}}
	call := func(client int, from, to int64, ops []operation, saw string) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: ops, Call: from, Return: to, Output: answer{saw: []string{saw}}}
	}
	lost := []porcupine.Operation{call(0, 0, 10, increment, "1"), call(1, 5, 15, increment, "1")}
	stale := []porcupine.Operation{call(0, 0, 10, increment, "1"), call(1, 11, 15, get, "-")}
	for name, calls := range map[string][]porcupine.Operation{"lost update": lost, "stale read": stale} {
		if porcupine.CheckOperations(serially, calls) {
			t.Errorf("%s: taken for an order", name)
		}
	}
	early := []porcupine.Operation{call(0, 0, 10, increment, "1"), call(1, 9, 15, get, "-")}
	early[0].Output, early[0].Return = answer{unknown: true}, math.MaxInt64
	if !porcupine.CheckOperations(serially, early) {
		t.Error("a call that may not have happened was not left out")
	}
}
