package asyncify

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	w "github.com/sandboxd/sandboxd/internal/wasmtest"
)

// real names the wasm-opt that tests use besides the scripts that stand for one.
var real = flag.String("wasmopt", "", "a wasm-opt, or auto for the one on PATH")

var fdRead = w.Func{Import: "wasi_snapshot_preview1", Name: "fd_read", Params: []byte{w.I32, w.I32, w.I32, w.I32}, Results: []byte{w.I32}}

// reader returns a program that reads, with more functions.
func reader(more ...w.Func) []byte {
	body := w.Seq(w.I32Const(0), w.I32Const(16), w.I32Const(1), w.I32Const(32), w.Call(0), w.Drop)
	return w.Module{Funcs: append([]w.Func{fdRead, {Name: "_start", Body: body}}, more...), Memory: [2]uint32{1, 0}}.Encode()
}

// rewritten returns a module that looks like what comes of reader().
func rewritten(more ...w.Func) []byte {
	return reader(append([]w.Func{
		{Name: StartUnwind, Params: []byte{w.I32}},
		{Name: StopUnwind},
		{Name: StartRewind, Params: []byte{w.I32}},
		{Name: StopRewind},
		{Name: GetState, Results: []byte{w.I32}, Body: w.I32Const(0)},
	}, more...)...)
}

// script returns a tool that is a shell script: it says its version, and otherwise
// does body, with the path of the result in $out.
func script(t *testing.T, o Options, body string) *Tool {
	t.Helper()
	if !confines {
		t.Skip(ErrSystem)
	}
	o.Program = filepath.Join(t.TempDir(), "wasm-opt")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && { echo wasm-opt version 1; exit; }\nout=$3\n" + body + "\n"
	if err := os.WriteFile(o.Program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	tool, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// file returns the path of a file with that content.
func file(t *testing.T, b []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// copying returns what copies a file to where the result is expected, after it has
// read what it is given.
func copying(t *testing.T, b []byte) string {
	return "cat >/dev/null; cp " + file(t, b) + " $out"
}

func TestNew(t *testing.T) {
	for program, want := range map[string]error{"": ErrOff, Off: ErrOff, "/nonexistent/wasm-opt": ErrNotFound} {
		if !confines && want == ErrNotFound {
			want = ErrSystem
		}
		if tool, err := New(Options{Program: program}); !errors.Is(err, want) || tool != nil {
			t.Errorf("%q: %v", program, err)
		}
	}
	var off *Tool
	if _, err := off.Rewrite(t.Context(), reader()); !errors.Is(err, ErrOff) {
		t.Errorf("no tool: %v", err)
	}
	if !confines {
		return
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\necho hello\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tool, err := New(Options{Program: other})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Rewrite(t.Context(), reader()); !isRun(err) {
		t.Errorf("another program: %v", err)
	}
}

func isRun(err error) bool {
	_, ok := errors.AsType[*RunError](err)
	return ok
}

// A result is made once, and by whoever comes first.
func TestKept(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	o := Options{Cache: filepath.Join(t.TempDir(), "cache")}
	body := "echo >>" + count + "; " + copying(t, rewritten())
	runs := func() int {
		b, _ := os.ReadFile(count)
		return len(b)
	}
	first, second := script(t, o, body), script(t, o, body)
	done := make(chan error)
	for _, tool := range []*Tool{first, second, first, second} {
		go func() {
			out, err := tool.Rewrite(context.Background(), reader())
			if err == nil && !bytes.Equal(out, rewritten()) {
				err = errors.New("another result")
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := runs(); n != 1 {
		t.Errorf("ran %d times", n)
	}
	if _, err := first.Rewrite(t.Context(), reader(w.Func{Name: "more"})); !errors.Is(err, ErrResult) || runs() != 2 {
		t.Errorf("another module: %v, ran %d times", err, runs())
	}
	spoil(t, o.Cache)
	if _, err := first.Rewrite(t.Context(), reader()); err != nil || runs() != 3 {
		t.Errorf("spoilt cache: %v, ran %d times", err, runs())
	}
	for _, e := range entries(t, o.Cache) {
		if e != ".lock" && filepath.Ext(e) != ".wasm" {
			t.Errorf("%s is left", e)
		}
	}
}

// spoil changes a byte of each result that is kept.
func spoil(t *testing.T, cache string) {
	t.Helper()
	for _, e := range entries(t, cache) {
		if filepath.Ext(e) != ".wasm" {
			continue
		}
		name := filepath.Join(cache, e)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// What wasm-opt does wrong is an error, and what it may take has an end.
func TestRunErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		o    Options
		body string
		want func(error) bool
	}{
		"fails":        {Options{}, "cat >/dev/null; echo 'bad\033[2J module' >&2; exit 3", func(err error) bool { return isRun(err) && strings.HasSuffix(err.Error(), "bad?[2J module") }},
		"reads not":    {Options{}, "exit 1", isRun},
		"hangs":        {Options{Timeout: 200 * time.Millisecond}, "sleep 60", isTimeout},
		"hangs, child": {Options{Timeout: 200 * time.Millisecond}, "sleep 60 & sleep 60", isTimeout},
		"no result":    {Options{}, "cat >/dev/null", isResult},
		"no module":    {Options{}, copying(t, []byte("no")), isResult},
		"unchanged":    {Options{}, copying(t, reader()), isResult},
		"a link":       {Options{}, "cat >/dev/null; ln -s " + file(t, rewritten()) + " $out", isResult},
		"large":        {Options{}, "cat >/dev/null; head -c 150000000 /dev/zero >$out", isRun},
		"memory":       {Options{Memory: 16 << 20}, "cat >/dev/null; head -c 100000000 /dev/zero | tail -c 90000000 >/dev/null", isRun},
		"talks":        {Options{}, "cat >/dev/null; head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero; exit 1", isRun},
	} {
		t.Run(name, func(t *testing.T) {
			tt.o.Cache = filepath.Join(t.TempDir(), "cache")
			tool := script(t, tt.o, tt.body)
			out, err := tool.Rewrite(t.Context(), reader())
			if out != nil || err == nil || !tt.want(err) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%d bytes, %v", len(out), err)
			}
			for _, e := range entries(t, tt.o.Cache) {
				if e != ".lock" {
					t.Errorf("%s is left", e)
				}
			}
		})
	}
}

func isResult(err error) bool { return errors.Is(err, ErrResult) }

func isTimeout(err error) bool {
	e, ok := errors.AsType[*RunError](err)
	return ok && e.Timeout > 0 && errors.Is(err, context.DeadlineExceeded)
}

// The environment and the folder of the host are not what wasm-opt gets.
func TestPrivate(t *testing.T) {
	t.Setenv("SECRET", "secret")
	tool := script(t, Options{}, `cat >/dev/null; echo "$(env | sort | cut -d= -f1 | tr '\n' ' ') $(pwd) $(ls)" >&2; exit 1`)
	_, err := tool.Rewrite(t.Context(), reader())
	for _, no := range []string{"SECRET", "tool_test.go"} {
		if strings.Contains(err.Error(), no) {
			t.Errorf("it has %s: %v", no, err)
		}
	}
}

// What is not fit to be rewritten is not given to wasm-opt.
func TestNotFit(t *testing.T) {
	tool := script(t, Options{}, "exit 1")
	for name, module := range map[string][]byte{
		"no module": []byte("\x00asm"),
		"no read":   w.Module{Funcs: []w.Func{{Name: "_start"}}}.Encode(),
		"own name":  reader(w.Func{Name: StopRewind}),
	} {
		if _, err := tool.Rewrite(t.Context(), module); !errors.Is(err, ErrModule) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A result has the imports and the exports of its module, and asyncify's, and
// nothing else.
func TestCheck(t *testing.T) {
	original, err := fit(reader())
	if err != nil {
		t.Fatal(err)
	}
	if err := check(original, rewritten()); err != nil {
		t.Error(err)
	}
	exit := w.Func{Import: "wasi_snapshot_preview1", Name: "proc_exit", Params: []byte{w.I32}}
	for name, out := range map[string][]byte{
		"nothing added":  reader(),
		"more exports":   rewritten(w.Func{Name: "more"}),
		"another import": w.Module{Funcs: append([]w.Func{exit}, w.Func{Name: "_start"}), Memory: [2]uint32{1, 0}}.Encode(),
		"another type":   reader(w.Func{Name: StartUnwind}, w.Func{Name: StopUnwind}, w.Func{Name: StartRewind}, w.Func{Name: StopRewind}, w.Func{Name: GetState}),
		"no module":      []byte("no"),
	} {
		if err := check(original, out); !errors.Is(err, ErrResult) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A real wasm-opt makes what is expected of it.
func TestRealTool(t *testing.T) {
	if *real == "" {
		t.Skip("no -wasmopt")
	}
	tool, err := New(Options{Program: *real})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Rewrite(t.Context(), reader()); err != nil {
		t.Error(err)
	}
	if _, err := tool.Rewrite(t.Context(), reader(w.Func{Name: "bad", Body: w.Drop})); !isRun(err) {
		t.Errorf("a module that is not valid: %v", err)
	}
}
