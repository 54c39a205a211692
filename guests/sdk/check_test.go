package sdk

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	d := Tool("echo", echo)
	for _, c := range []struct{ in, want string }{
		{`{"name":"a"}`, `{"mode":"fast","name":"a","offset":0}`},
		{`{"name":"a","mode":"careful","level":2}`, `{"level":2,"mode":"careful","name":"a","offset":0}`},
		{`{"name":"a","offset":3.0,"level":1e0}`, `{"level":1,"mode":"fast","name":"a","offset":3}`},
		{`{"name":"a","nested":[{"key":"k"}]}`, `{"mode":"fast","name":"a","nested":[{"key":"k","value":7}],"offset":0}`},
		{`{"name":"a","any":{"free":[1,null]},"raw":12345678901234567890}`, `{"any":{"free":[1,null]},"mode":"fast","name":"a","offset":0,"raw":12345678901234567890}`},
	} {
		got, err := arguments(d.input, json.RawMessage(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.in, got, err, c.want)
		}
	}
}

func TestArgumentsRefused(t *testing.T) {
	d := Tool("echo", echo)
	for _, c := range []struct{ in, want string }{
		{``, "arguments: name is missing"},
		{`[]`, "arguments: want object, got array"},
		{`{} {}`, "arguments: want one JSON value"},
		{`{"name":"a","Name":"b"}`, "arguments: Name is unknown"},
		{`{"name":null}`, "arguments.name: want string, got null"},
		{`{"name":1}`, "arguments.name: want string, got number"},
		{`{"name":""}`, "arguments.name: want at least 1 characters"},
		{`{"name":"123456789"}`, "arguments.name: want at most 8 characters"},
		{`{"name":"a","mode":"slow"}`, `arguments.mode: want one of "fast", "careful"`},
		{`{"name":"a","level":4}`, "arguments.level: want one of 1, 2, 3"},
		{`{"name":"a","level":1.5}`, "arguments.level: want integer, got number"},
		{`{"name":"a","offset":-1}`, "arguments.offset: want at least 0"},
		{`{"name":"a","limit":101}`, "arguments.limit: want at most 100"},
		{`{"name":"a","count":-1}`, "arguments.count: want at least 0"},
		{`{"name":"a","ratio":null}`, "arguments.ratio: want number, got null"},
		{`{"name":"a","ratio":1e999}`, "arguments.ratio: number out of range"},
		{`{"name":"a","tags":["x",1]}`, "arguments.tags[1]: want string, got number"},
		{`{"name":"a","labels":{"k":true}}`, "arguments.labels.k: want string, got boolean"},
		{`{"name":"a","nested":[{"value":1}]}`, "arguments.nested[0]: key is missing"},
	} {
		_, err := arguments(d.input, json.RawMessage(c.in))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.in, err, c.want)
		}
	}
}

func TestArgumentsOutOfRangeOfTheField(t *testing.T) {
	register(t, Tool("echo", echo))
	got := string(Run([]byte(`{"tool":"echo","arguments":{"name":"a","count":256}}`)))
	if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "everything.count") {
		t.Errorf("got %s", got)
	}
}

// Whatever a client sends is refused or understood; what is understood still
// satisfies the schema.
func FuzzArguments(f *testing.F) {
	d := Tool("echo", echo)
	f.Add(`{"name":"a","offset":3.0,"nested":[{"key":"k"}],"ratio":1e3}`)
	f.Add(`{"name":"\ud800","any":[[[]]]}`)
	f.Fuzz(func(t *testing.T, in string) {
		got, err := arguments(d.input, json.RawMessage(in))
		if err != nil {
			if got != nil {
				t.Errorf("both a value and %v", err)
			}
			return
		}
		v, err := parse(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.input.check("arguments", v); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	})
}
