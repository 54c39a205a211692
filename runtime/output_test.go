package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseOutput(t *testing.T) {
	for name, c := range map[string]struct {
		in      string
		content []string
		other   string // structuredContent
		isError bool
		dropped int
		invalid bool
	}{
		"plain text":         {in: "hello\n", content: []string{`{"type":"text","text":"hello"}`}},
		"nothing":            {in: "", content: []string{`{"type":"text","text":""}`}},
		"some other JSON":    {in: `{"a":1}`, content: []string{`{"type":"text","text":"{\"a\":1}"}`}},
		"content is text":    {in: `{"content":"x"}`, content: []string{`{"type":"text","text":"{\"content\":\"x\"}"}`}},
		"a result":           {in: ` {"content":[{"type":"text","text":"x"}]}`, content: []string{`{"type":"text","text":"x"}`}},
		"an error":           {in: `{"content":[],"isError":true}`, content: []string{}, isError: true},
		"structured only":    {in: `{"structuredContent":{"a":1}}`, content: []string{}, other: `{"a":1}`},
		"unknown fields":     {in: `{"content":[{"type":"text","text":"x","evil":1}]}`, content: []string{`{"type":"text","text":"x"}`}},
		"case variants":      {in: `{"content":[{"type":"text","TEXT":"y","text":"x"}]}`, content: []string{`{"type":"text","text":"x"}`}},
		"reserved _meta":     {in: `{"content":[],"_meta":{"dev.sandboxd/call":1,"DEV.Sandboxd/x":1,"a/b":2}}`, content: []string{}, dropped: 2},
		"reserved in blocks": {in: `{"content":[{"type":"text","text":"x","_meta":{"dev.sandboxd/violation":{}}}]}`, content: []string{`{"type":"text","text":"x"}`}, dropped: 1},
		"invalid UTF-8":      {in: "a\xffb", content: []string{"{\"type\":\"text\",\"text\":\"a\uFFFDb\"}"}},
		"deep":               {in: `{"structuredContent":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, invalid: true},
		"brackets in text":   {in: `{"structuredContent":"` + strings.Repeat("[", 100) + `"}`, content: []string{}, other: `"` + strings.Repeat("[", 100) + `"`},
		"unknown type":       {in: `{"content":[{"type":"smell"}]}`, invalid: true},
		"text without text":  {in: `{"content":[{"type":"text"}]}`, invalid: true},
		"image not base64":   {in: `{"content":[{"type":"image","data":"!","mimeType":"image/png"}]}`, invalid: true},
		"resource":           {in: `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"x"}}]}`, content: []string{`{"type":"resource","resource":{"uri":"a:b","text":"x"}}`}},
		"empty image":        {in: `{"content":[{"type":"image","data":"","mimeType":"image/png"}]}`, content: []string{`{"type":"image","data":"","mimeType":"image/png"}`}},
		"empty blob":         {in: `{"content":[{"type":"resource","resource":{"uri":"a:b","blob":""}}]}`, content: []string{`{"type":"resource","resource":{"uri":"a:b","blob":""}}`}},
		"resource of both":   {in: `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"x","blob":"eA=="}}]}`, invalid: true},
		"isError a string":   {in: `{"content":[],"isError":"no"}`, invalid: true},
		"content twice":      {in: `{"content":[],"content":[]}`, invalid: true},
		"text twice":         {in: `{"content":[{"type":"text","text":"a","text":"b"}]}`, invalid: true},
		"case of text":       {in: `{"content":[{"type":"text","text":"x","Text":"y"}]}`, content: []string{`{"type":"text","text":"x"}`}},
		"case of uri":        {in: `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"x","URI":"c:d"}}]}`, content: []string{`{"type":"resource","resource":{"uri":"a:b","text":"x"}}`}},
		"escaped key":        {in: `{"cont\u0065nt":[]}`, content: []string{}},
		"other fields":       {in: `{"content":[],"Content":[{"type":"smell"}],"ISERROR":true}`, content: []string{}},
		"more after it":      {in: `{"content":[]}x`, content: []string{`{"type":"text","text":"{\"content\":[]}x"}`}},
		"markup":             {in: `{"content":[{"type":"text","text":"<a>&"}]}`, content: []string{`{"type":"text","text":"<a>&"}`}},
		"brackets":           {in: strings.Repeat("[", 100), content: []string{`{"type":"text","text":"` + strings.Repeat("[", 100) + `"}`}},
		"item of no object":  {in: `{"content":[0]}`, invalid: true},
		"item of null":       {in: `{"content":[null]}`, invalid: true},
		"_meta a string":     {in: `{"content":[],"_meta":"no"}`, invalid: true},
	} {
		out, dropped, err := parseOutput(context.Background(), []byte(c.in), 1<<20)
		if (err != nil) != c.invalid {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		if c.invalid {
			continue
		}
		got := []string{}
		for _, b := range out.Content {
			got = append(got, string(b))
		}
		if !reflect.DeepEqual(got, c.content) || out.IsError != c.isError || dropped != c.dropped || string(out.StructuredContent) != c.other {
			t.Errorf("%s: %v, %s, isError %v, dropped %d", name, got, out.StructuredContent, out.IsError, dropped)
		}
	}
}

func TestContentBlockErrorsMatch(t *testing.T) {
	if _, _, err := parseOutput(context.Background(), []byte(`{"content":[{"type":"smell"}]}`), 1<<20); !errors.Is(err, errContent) {
		t.Errorf("error %v does not match errContent", err)
	}
}

// FuzzParseOutput: error or value, never both, and what comes out is valid for
// whoever reads it next.
func FuzzParseOutput(f *testing.F) {
	for _, s := range []string{"", "x", "{", `{"content":[]}`, `{"content":[{"type":"text","text":"\ud800"}],"_meta":{}}`, `{"structuredContent":[1,2]}`, "\xff{\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		out, _, err := parseOutput(context.Background(), b, 1<<20)
		if err != nil {
			if out.Content != nil || out.StructuredContent != nil || out.Meta != nil {
				t.Fatalf("error %v and value %+v", err, out)
			}
			return
		}
		text, err := json.Marshal(out)
		if err != nil || !utf8.Valid(text) {
			t.Fatalf("output does not marshal: %v", err)
		}
		for key := range out.Meta {
			if !guestKey(key) {
				t.Fatalf("reserved key left in %s", text)
			}
		}
	})
}
