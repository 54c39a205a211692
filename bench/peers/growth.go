package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
	"github.com/sandboxd/sandboxd/bench/peers/report"
	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// curves measures how the engine's costs grow.
func (l *lab) curves(ctx context.Context) (out []*report.Curve, err error) {
	for _, f := range []func(context.Context) (*report.Curve, error){l.touchCurve, l.packagesCurve, l.callersCurve, l.sizeCurve} {
		n := len(l.closers)
		c, err := f(ctx)
		if err := errors.Join(err, l.closeTo(n)); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// curve collects the points of lines.
type curve struct {
	report.Curve
	at map[string]int
}

// add measures the rows at x and adds a point for each. y reads it from a series.
func (c *curve) add(ctx context.Context, x float64, r *rows, o measure.Options, y func(*measure.Series) float64) error {
	all, err := r.measure(ctx, o)
	if err != nil {
		return err
	}
	if c.at == nil {
		c.at = map[string]int{}
	}
	for _, row := range all {
		i, ok := c.at[row.Name]
		if !ok {
			i = len(c.Lines)
			c.at[row.Name] = i
			c.Lines = append(c.Lines, report.Line{Name: row.Name, Missing: row.Missing})
		}
		switch {
		case row.Series == nil:
		case row.Series.Err != nil:
			return row.Series.Err
		default:
			c.Lines[i].Points = append(c.Lines[i].Points, report.Point{X: x, Y: y(row.Series)})
		}
	}
	return nil
}

func p50(s *measure.Series) float64 { return float64(s.Of(measure.P50)) / float64(time.Microsecond) }

// few returns the options of one point of a curve.
func (l *lab) few(callers int) measure.Options {
	o := l.options(callers)
	o.Rounds = min(o.Rounds, 5)
	return o
}

// some returns the places of a curve; a short run has the ends of it.
func (l *lab) some(xs ...int) []int {
	if !l.short {
		return xs
	}
	return []int{xs[0], xs[min(2, len(xs)-1)]}
}

// touchCurve is a call that writes to so many pages of its memory.
func (l *lab) touchCurve(ctx context.Context) (*report.Curve, error) {
	c := &curve{Curve: report.Curve{ID: "touched", Title: "A call that writes to pages of 4 KiB", X: "pages", Y: "p50 µs", Log: true}}
	w := work{"touch", json.RawMessage(`{}`), "touched"}
	for _, pages := range l.some(1, 4, 16, 64, 256, 1024, 4096) {
		p := &tool.Package{Module: toucher(pages), Manifest: tool.Manifest{
			Name: fmt.Sprintf("touch-%d", pages), ABI: tool.Reactor,
			Tools:  []tool.Definition{definition("touch", `{"type":"object"}`)},
			Limits: tool.Limits{Memory: 64 << 20, Timeout: 5 * time.Second, Output: 1 << 16, Writes: 1 << 20, Files: 10},
		}}
		r := &rows{}
		for _, s := range strategies[:2] {
			box, err := l.openSandbox(ctx, s.strategy)
			var subject measure.Subject
			if err == nil {
				var loaded *runtime.Package
				if loaded, err = box.add(ctx, p, ""); err != nil {
					return nil, err
				}
				if err = box.holds(loaded); err == nil {
					subject = sandboxed("", loaded, w)
				}
			}
			if err := r.add("sandboxd"+s.suffix, subject, err); err != nil {
				return nil, err
			}
		}
		v, err := l.openLiveModule(ctx, p.Module, "", false)
		if err != nil {
			return nil, err
		}
		if err := r.add("live instance", v.subject("", w), nil); err != nil {
			return nil, err
		}
		l.say("memory touched: %d pages", pages)
		if err := c.add(ctx, float64(pages), r, l.few(1), p50); err != nil {
			return nil, err
		}
	}
	return &c.Curve, nil
}

// toucher is a reactor that writes to so many pages and answers "touched".
func toucher(pages int) []byte {
	const answer, base, page = 1024, 1 << 16, 4096
	touch := wasmtest.Seq( // for i := pages; i > 0; i-- { memory[base+(i-1)*page] = i }
		wasmtest.I32Const(int32(pages)), wasmtest.LocalSet(2),
		wasmtest.Loop,
		wasmtest.LocalGet(2), wasmtest.I32Const(-1), wasmtest.I32Add, wasmtest.LocalSet(2),
		wasmtest.LocalGet(2), wasmtest.I32Const(page), []byte{0x6c}, wasmtest.I32Const(base), wasmtest.I32Add, // i32.mul
		wasmtest.LocalGet(2), []byte{0x36, 2, 0}, // i32.store
		wasmtest.LocalGet(2), wasmtest.BrIf(0),
		wasmtest.End,
		wasmtest.I64Const(answer<<32|7),
	)
	return wasmtest.Module{
		Funcs: []wasmtest.Func{
			{Name: "sandboxd_alloc", Params: []byte{wasmtest.I32}, Results: []byte{wasmtest.I32}, Body: wasmtest.I32Const(4096)},
			{Name: "sandboxd_call", Params: []byte{wasmtest.I32, wasmtest.I32}, Results: []byte{wasmtest.I64}, Locals: []byte{wasmtest.I32}, Body: touch},
		},
		Memory: [2]uint32{uint32(1 + (pages*page+1<<16-1)>>16), 0},
		Data:   map[uint32][]byte{answer: []byte("touched")},
	}.Encode()
}

func definition(name, schema string) tool.Definition {
	return tool.Definition{
		Name: name, InputSchema: json.RawMessage(schema),
		Claim: capabilities.Claim{ReadOnly: capabilities.True, OpenWorld: capabilities.False},
	}
}

// packagesCurve is a call of one package after the other, of so many that are loaded.
func (l *lab) packagesCurve(ctx context.Context) (*report.Curve, error) {
	c := &curve{Curve: report.Curve{ID: "packages", Title: "Calls of one package after the other", X: "packages that are loaded", Y: "p50 µs", Log: true}}
	dir, err := l.ship(ctx, cReactor)
	if err != nil {
		return &c.Curve, c.without(err, "C reactor, image", "C reactor, new instance")
	}
	for _, n := range l.some(1, 10, 50, 200) {
		dirs, err := l.variants(dir, n)
		if err != nil {
			return nil, err
		}
		r := &rows{}
		for _, s := range strategies[:2] {
			subject, err := l.inTurn(ctx, s.strategy, dirs)
			if err := r.add("C reactor"+s.suffix, subject, err); err != nil {
				return nil, err
			}
		}
		l.say("packages: %d", n)
		if err := c.add(ctx, float64(n), r, l.few(1), p50); err != nil {
			return nil, err
		}
	}
	return &c.Curve, nil
}

// without says why a curve has no lines; an error that is no such reason is
// returned.
func (c *curve) without(err error, names ...string) error {
	r := &rows{}
	for _, name := range names {
		if err := r.add(name, measure.Subject{}, err); err != nil {
			return err
		}
	}
	return c.add(context.Background(), 0, r, measure.Options{Callers: 1}, p50)
}

// inTurn returns the subject whose calls go to one package after the other.
func (l *lab) inTurn(ctx context.Context, s runtime.Strategy, dirs []string) (measure.Subject, error) {
	box, err := l.openSandbox(ctx, s)
	if err != nil {
		return measure.Subject{}, err
	}
	w := work{"echo", json.RawMessage(`{"text":"` + hello + `"}`), hello}
	var subjects []measure.Subject
	for _, dir := range dirs {
		p, err := box.load(ctx, dir, "")
		if err != nil {
			return measure.Subject{}, err
		}
		subjects = append(subjects, sandboxed("", p, w))
	}
	return measure.Subject{CPU: measure.Self, Call: func(ctx context.Context, caller, n int) error {
		return subjects[n%len(subjects)].Call(ctx, caller, n)
	}}, nil
}

// callersCurve is how many calls are answered in a second, by callers.
func (l *lab) callersCurve(ctx context.Context) (*report.Curve, error) {
	c := &curve{Curve: report.Curve{ID: "callers", Title: "Calls in a second", X: "callers", Y: "calls/s", Log: true}}
	w := work{"echo", json.RawMessage(`{"text":"` + hello + `"}`), hello}
	all := &rows{}
	if err := l.sandboxRows(ctx, all, w, l.path("data"), l.reactors(), strategies[:2]); err != nil {
		return nil, err
	}
	if err := l.extismRows(ctx, all, w, l.path("data"), []bool{true}); err != nil {
		return nil, err
	}
	for _, n := range l.some(1, 2, 4, 8, 16) {
		l.say("callers: %d", n)
		r := &rows{subjects: all.subjects, all: append([]report.Row(nil), all.all...)}
		if err := c.add(ctx, float64(n), r, l.few(n), (*measure.Series).PerSecond); err != nil {
			return nil, err
		}
	}
	return &c.Curve, nil
}

// sizeCurve is echo, whose argument and result are so long.
func (l *lab) sizeCurve(ctx context.Context) (*report.Curve, error) {
	c := &curve{Curve: report.Curve{ID: "size", Title: "Echo of a long text: argument and result", X: "bytes", Y: "p50 µs", Log: true}}
	for _, n := range l.some(100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000) {
		text := strings.Repeat("x", n)
		w := work{"echo", json.RawMessage(`{"text":"` + text + `"}`), text}
		r := &rows{}
		if err := r.add(report.Native, nativeSubject(w), nil); err != nil {
			return nil, err
		}
		if err := l.sandboxRows(ctx, r, w, l.path("data"), l.reactors(), strategies[:2]); err != nil {
			return nil, err
		}
		l.say("size: %d bytes", n)
		if err := c.add(ctx, float64(n), r, l.few(1), p50); err != nil {
			return nil, err
		}
	}
	return &c.Curve, nil
}
