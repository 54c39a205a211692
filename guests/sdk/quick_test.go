package sdk

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// plainly has the kinds of arguments that are understood at once.
type plainly struct {
	Path    string   `json:"path" maxLength:"20"`
	Edits   []change `json:"edits,omitempty"`
	Mode    string   `json:"mode" enum:"fast,slow" default:"slow"`
	Limit   int      `json:"limit,omitempty" minimum:"-5" maximum:"100"`
	Ratio   *float64 `json:"ratio"`
	DryRun  bool     `json:"dryRun,omitempty" default:"true"`
	Exclude []string `json:"exclude,omitempty" default:"[]"`
	Small   int8     `json:"small,omitempty"`
}

type change struct {
	Old string `json:"old"`
	New string `json:"new"`
}

func got(_ *Call, in plainly) (plainly, error) { return in, nil }

func request1(arguments string) []byte {
	return []byte(`{"tool":"t","arguments":` + arguments + `,"context":{"callId":"A-1"}}`)
}

// TestQuick: what is understood at once is, and the rest is not.
func TestQuick(t *testing.T) {
	register(t, Tool("t", got), Tool("other", echo))
	for in, want := range map[string]bool{
		`{"path":"a"}`: true, `{"limit":-5,"path":"é","ratio":100}`: true, `{"path":"12345678901234567890"}`: true,
		`{"path":"a","mode":"fast","dryRun":false,"exclude":["x","\u003c\n"],"edits":[{"new":"","old":"\\\""}]}`: true,
		`{}`: false, `{ "path":"a"}`: false, `{"path":"a","path":"b"}`: false, `{"Path":"a"}`: false, `{"path":"a","x":1}`: false,
		`{"path":"123456789012345678901"}`: false, `{"path":"\n"}`: true, `{"path":null}`: false, `{"path":1}`: false, `{"path":"a"`: false,
		`{"path":"a","small":1000}`: false, `{"path":"a","limit":-6}`: false, `{"path":"a","limit":101}`: false, `{"path":"a","limit":01}`: false, `{"path":"a","limit":-0}`: false,
		`{"path":"a","limit":1.0}`: false, `{"path":"a","limit":1e1}`: false, `{"path":"a","limit":-}`: false, `{"path":"a","limit":}`: false,
		`{"path":"a","ratio":1234567890123456}`: false, `{"path":"a","mode":"odd"}`: false, `{"path":"a","mode":"f\u0061st"}`: true,
		`{"path":"a","edits":[{"old":""}]}`: false, `{"path":"a","edits":[{}]}`: false, `{"path":"a","edits":[1]}`: false, `{"path":"a","edits":[`: false,
		`{"path":"a","exclude":["\x"]}`: false, `{"path":"a","exclude":["\u12"]}`: false, `{"path":"a","exclude":["a",]}`: false,
		`{"path":"a","exclude":["a" "b"]}`: false, `{"path":"a","dryRun":truth}`: false, `{"path":"a",}`: false, `{"path":"a"]`: false,
	} {
		if d, _, id := quick(request1(in)); (d != nil) != want || want && id != "A-1" {
			t.Errorf("%s: understood: %t", in, d != nil)
		}
	}
	for _, in := range []string{
		``, `{"tool":"t"}`, `{"tool":"t","arguments":{"path":"a"}}`, `{"tool":"none","arguments":{"path":"a"},"context":{"callId":"A"}}`,
		`{"tool":"t","arguments":{"path":"a"},"context":{"callId":"A","more":1}}`, `{"tool":"t","arguments":{"path":"a"},"context":{"callId":"A`,
		`{"tool":"t","arguments":{"path":"a"},"context":{"callId":"A"}} `, `{"tool":"t","arguments":[],"context":{"callId":"A"}}`,
		// Raw JSON, and what a type reads in its own way, as encoding/json has always handed it on.
		`{"tool":"other","arguments":{"name":"a","raw":1},"context":{"callId":"A"}}`,
		`{"tool":"other","arguments":{"name":"a","any":1},"context":{"callId":"A"}}`,
		`{"tool":"other","arguments":{"name":"a","when":"2000-01-01T00:00:00Z"},"context":{"callId":"A"}}`,
	} {
		if d, _, _ := quick([]byte(in)); d != nil {
			t.Errorf("%s: understood", in)
		}
	}
}

// FuzzQuick: what is understood at once is what the long way makes of it.
func FuzzQuick(f *testing.F) {
	register(f, Tool("t", got), Tool("other", echo))
	for _, in := range []string{
		`{"path":"a","edits":[{"new":"","old":"\\\""}]}`,
		`{"limit":-5,"path":"é","ratio":100,"exclude":["\ud800","\u00e9&\n"],"edits":[]}`,
		`{"path":"a","mode":"fast","small":1000}`,
		"{\"path\":\"a\xff\xff&\",\"exclude\":[\"0123456789\xe2\x80\xa8\\t\"]}",
	} {
		f.Add(in, false)
	}
	f.Add(`{"name":"a","count":3,"ratio":2,"offset":7,"limit":9,"tags":["x"],"nested":[{"key":"k"}],"mode":"careful"}`, true)
	f.Add(`{"name":"a","blob":"AAAA","pair":[true,false],"labels":{"k":"v"},"level":1}`, true)
	f.Fuzz(func(t *testing.T, in string, other bool) {
		req := request1(in)
		if other {
			req = []byte(strings.Replace(string(req), `"t"`, `"other"`, 1))
		}
		d, short, _ := quick(req)
		if d == nil {
			return
		}
		long, err := d.decode(json.RawMessage(in))
		if err != nil || !reflect.DeepEqual(short, long) {
			t.Fatalf("%s: %+v; the long way %+v, %v", in, short, long, err)
		}
	})
}

// written has the kinds of results that are written at once, and others.
type written struct {
	page
	Text   string            `json:"text"`
	Empty  string            `json:"empty,omitempty"`
	List   []string          `json:"list"`
	Inner  []change          `json:"inner,omitempty"`
	Number int16             `json:"number,omitempty"`
	Size   uint              `json:"size"`
	Ratio  float64           `json:"ratio"`
	Truth  *bool             `json:"truth"`
	Map    map[string]string `json:"map,omitempty"`
	At     time.Time         `json:"at"`
	Any    any               `json:"any"`
	Odd    odd               `json:"odd"`
}

// odd writes itself as another text than it is.
type odd string

func (o odd) MarshalText() ([]byte, error) { return []byte("<" + o), nil }

// shy does so where it has an address.
type shy string

func (s *shy) MarshalText() ([]byte, error) { return []byte("shy"), nil }

// FuzzResult: results are written as encoding/json writes them.
func FuzzResult(f *testing.F) {
	out := func(v any) *schema {
		s, err := outputSchema(reflect.TypeOf(v))
		if err != nil {
			f.Fatal(err)
		}
		return s
	}
	full, zero, late := out(written{}), out(report{}), out(struct {
		L []shy `json:"l"`
		N json.Number
	}{})
	f.Add("plain", int64(0), false, false)
	f.Add("<\xff\u2028\">\b\f\x7f\x00 0123456789abcdef&\u2029\ufffdé", int64(-7), true, true)
	f.Fuzz(func(t *testing.T, text string, n int64, isError, marked bool) {
		w := written{Text: text, List: strings.Split(text, "0"), Number: int16(n), Size: uint(n), Ratio: float64(n) / 3, Odd: odd(text), Any: text}
		if marked {
			w = written{Empty: text, Inner: []change{{text, ""}, {}}, Truth: &isError, Map: map[string]string{text: text}, page: page{Offset: int(n)}}
		}
		for s, v := range map[*schema]any{
			full: w, zero: report{Entries: w.List, Counts: map[string]int{text: 1}}, late: struct {
				L []shy `json:"l"`
				N json.Number
			}{L: []shy{shy(text)}, N: "1"},
		} {
			got, err := marshal(s, v)
			want, wrong := json.Marshal(v)
			if (err == nil) != (wrong == nil) || string(got) != string(want) {
				t.Fatalf("got %s, %v, want %s, %v", got, err, want, wrong)
			}
			if _, quick := s.write(nil, reflect.ValueOf(v)); quick == (s == late) {
				t.Errorf("%T is written at once: %t", v, quick)
			}
			r := resultOf(s, v)
			if r.IsError = isError; marked {
				r.Content[0].Meta = map[string]any{"k": text}
			}
			if got, err = r.json(); err != nil {
				t.Fatal(err)
			}
			if want, err := json.Marshal(r); err != nil || string(got) != string(want) {
				t.Errorf("got %s, want %s, %v", got, want, err)
			}
		}
	})
}
