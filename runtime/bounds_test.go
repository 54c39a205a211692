package runtime

import (
	"bytes"
	"context"
	"errors"
	goruntime "runtime"
	"strings"
	"testing"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// allocated returns how many bytes f takes in all.
func allocated(f func()) int64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// many returns an object or an array of so many members or items.
func many(n int, first, each, last string) string {
	return first + strings.Repeat(each+",", n-1) + each + last
}

// TestWhatIsTooMuchTakesNoMemory: what an answer holds is counted before it is
// read into anything.
func TestWhatIsTooMuchTakesNoMemory(t *testing.T) {
	const n = 1 << 20
	for name, in := range map[string]string{
		"content":    many(n, `{"content":[`, `0`, `]}`),
		"empty":      many(n, `{"content":[`, `{}`, `]}`),
		"audience":   many(n, `{"content":[{"type":"text","text":"x","annotations":{"audience":[`, `""`, `]}}]}`),
		"_meta":      many(n, `{"content":[],"_meta":{`, `"k":0`, `}}`),
		"block":      many(n, `{"content":[{"type":"text","text":"x",`, `"k":0`, `}]}`),
		"structured": many(n, `{"structuredContent":[`, `0`, `]}`),
		"isError":    many(n, `{"content":[],"isError":[`, `0`, `]}`),
	} {
		b := []byte(in)
		var err error
		if took := allocated(func() { _, _, err = parseOutput(context.Background(), b, 64<<20) }); took > 64<<10 {
			t.Errorf("%s: %d bytes for %d", name, took, len(b))
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestOtherFieldsTakeNoMemory: what no result has is passed over.
func TestOtherFieldsTakeNoMemory(t *testing.T) {
	b := []byte(many(1<<20, `{"content":[],`, `"k":[0]`, `}`))
	var err error
	if took := allocated(func() { _, _, err = parseOutput(context.Background(), b, 64<<20) }); took > 64<<10 || err != nil {
		t.Errorf("%d bytes, %v", took, err)
	}
}

// TestReadingTakesLittleMore than what is read.
func TestReadingTakesLittleMore(t *testing.T) {
	const n = 4 << 20
	for name, in := range map[string]string{
		"plain": strings.Repeat("a", n),
		"text":  `{"content":[{"type":"text","text":"` + strings.Repeat("a", n) + `"}]}`,
		"image": `{"content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("AAAA", n/4) + `"}]}`,
		"texts": many(1000, `{"content":[`, `{"type":"text","text":"`+strings.Repeat("a", n/1000)+`"}`, `]}`),
	} {
		b := []byte(in)
		var err error
		if took := allocated(func() { _, _, err = parseOutput(context.Background(), b, n) }); took > 8*n || err != nil {
			t.Errorf("%s: %d bytes for %d, %v", name, took, len(b), err)
		}
	}
}

// TestResultIsBoundedAsItIsSent: JSON may take six bytes for one.
func TestResultIsBoundedAsItIsSent(t *testing.T) {
	const limit = 1 << 16
	for name, c := range map[string]struct {
		in   string
		fits bool
	}{
		"plain":              {strings.Repeat("a", limit), true},
		"lines":              {strings.Repeat("\n", limit), true},
		"markup":             {strings.Repeat("<", limit), false},
		"separators":         {strings.Repeat("\u2028", limit/3), true},
		"control characters": {strings.Repeat("\x01", limit), false},
		"no UTF-8":           {strings.Repeat("\xff", limit), false},
		"some control":       {strings.Repeat("\x1b[1maaaaaa", limit/10), true},
		"text of markup":     {`{"content":[{"type":"text","text":"` + strings.Repeat("<", limit-100) + `"}]}`, false},
		"text of separators": {`{"content":[{"type":"text","text":"` + strings.Repeat("\u2028", limit/3-100) + `"}]}`, true},
		"structured markup":  {`{"structuredContent":"` + strings.Repeat("<", limit-100) + `"}`, false},
		"many of markup":     {many(900, `{"content":[`, `{"type":"text","text":"`+strings.Repeat("<", 40)+`"}`, `]}`), false},
		"text of escapes":    {`{"content":[{"type":"text","text":"` + strings.Repeat(`\u003c`, limit/6-100) + `"}]}`, true},
	} {
		_, _, err := parseOutput(context.Background(), []byte(c.in), limit)
		if _, over := errors.AsType[*LimitError](err); over == c.fits || c.fits && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnswerOverItsLimitCommitsNothing: neither as a result nor as what a program
// that failed has written.
func TestAnswerOverItsLimitCommitsNothing(t *testing.T) {
	text := strings.Repeat("<", 10_000)
	for name, end := range map[string][]byte{"good end": {}, "exit status": exit(1)} {
		p := pack(command("new", text, w.Seq(open("new", oflagCreate, rightWrite), write(1, int32(len(text))), end)), tool.Command, writer)
		p.Manifest.Limits.Output = int64(len(text))
		loaded, dir := load(t, newEngine(t, Observer{}), p)
		r := loaded.Call(context.Background(), Request{Tool: "t"})
		if r.Outcome != Limit || r.Committed || textOf(t, r) != "t was stopped: it reached its output limit. The changes that it had made were not saved." {
			t.Errorf("%s: %s (%v), %s", name, r.Outcome, r.Err, textOf(t, r))
		}
		untouched(t, dir)
	}
}

// TestOutputTakesNoMoreThanItsLimit: a buffer does not double past it.
func TestOutputTakesNoMoreThanItsLimit(t *testing.T) {
	const limit = 100_000
	out, log := &cappedWriter{limit: limit}, &cappedBuffer{limit: limit}
	var want []byte
	for piece := bytes.Repeat([]byte("x"), 999); len(want)+len(piece) <= limit; {
		want = append(want, piece...)
		if n, err := out.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
		if n, err := log.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if !bytes.Equal(out.b, want) || !bytes.Equal(log.b, want) || cap(out.b) > limit || cap(log.b) > limit {
		t.Errorf("%d and %d bytes in %d and %d", len(out.b), len(log.b), cap(out.b), cap(log.b))
	}
	if _, err := out.Write(make([]byte, limit)); !isOutputLimit(err) || !bytes.Equal(out.b, want) {
		t.Errorf("over the limit: %v", err)
	}
}

func isOutputLimit(err error) bool {
	_, ok := errors.AsType[*wasi.OutputLimitError](err)
	return ok
}

// TestOutputCountsAsMemory: what a call may write is a part of what it may take.
func TestOutputCountsAsMemory(t *testing.T) {
	e := newEngine(t, Observer{})
	p := pack(writesAndSmiles(), tool.Command, writer)
	memory, output := p.Manifest.Limits.Memory, p.Manifest.Limits.Output
	if _, err := e.Load(context.Background(), p, Binding{Limits: CallLimits{Memory: memory + outputCost*output - 1}}); err == nil {
		t.Error("a package was loaded whose calls could never run")
	}
	loaded, err := e.Load(context.Background(), p, Binding{Limits: CallLimits{Memory: memory + outputCost*output}})
	if err != nil {
		t.Fatal(err)
	}
	if r := loaded.Call(context.Background(), Request{Tool: "t"}); r.Outcome != OK {
		t.Errorf("%s, %v", r.Outcome, r.Err)
	}
}

// TestDefaultsFitOneAnother: as many calls of default limits run as may run.
func TestDefaultsFitOneAnother(t *testing.T) {
	m, err := tool.ParseManifest("tool.yaml", []byte("name: a\nmodule: a.wasm\ntools: [{name: t, inputSchema: {type: object}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []CallLimits{packageLimits, engineLimits} {
		if most := l.Memory / footprint(m.Limits); most != int64(l.Calls) {
			t.Errorf("%+v: memory for %d", l, most)
		}
	}
	big, err := tool.ParseManifest("tool.yaml", []byte("name: a\nmodule: a.wasm\nlimits: {memory: 1GiB, output: 16MiB}\ntools: [{name: t, inputSchema: {type: object}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if footprint(big.Limits) > packageLimits.Memory {
		t.Errorf("a package of the greatest limits needs %d bytes", footprint(big.Limits))
	}
}
