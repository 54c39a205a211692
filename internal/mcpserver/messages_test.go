package mcpserver

import (
	"bytes"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestParseMessages(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`
	for body, want := range map[string]int{
		call:                                   1,
		" \n" + call + "\n":                    1,
		"[" + call + "]":                       1,
		"[" + call + "," + call + "]":          2,
		`{"jsonrpc":"2.0","id":1,"result":{}}`: 1,
		"[]":                                   0,
		"":                                     0,
		"null":                                 0,
		"[null]":                               0,
		`"a"`:                                  0,
		"[[" + call + "]]":                     0,
		call + call:                            0,
		"[" + call + "]x":                      0,
		`{"jsonrpc":"2.0"}`:                    0,
		`{"jsonrpc":"1.0","id":1,"method":"tools/call"}`: 0,
	} {
		before := bytes.Clone([]byte(body))
		ms, err := parseMessages([]byte(body))
		if (err == nil) != (want > 0) || err == nil && len(ms.list) != want {
			t.Errorf("%s: %+v, %v", body, ms, err)
		}
		if !bytes.Equal(before, []byte(body)) {
			t.Errorf("%s: was written to", before)
		}
	}
}

func TestMessagesCancelled(t *testing.T) {
	ms, err := parseMessages([]byte(`[
		{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}},
		{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}},
		{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}},
		{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}},
		{"jsonrpc":"2.0","method":"notifications/cancelled"},
		{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{"requestId":8}},
		{"jsonrpc":"2.0","method":"notifications/progress","params":{"requestId":9}}]`))
	if err != nil {
		t.Fatal(err)
	}
	ids := ms.cancelled()
	if len(ids) != 2 || ids[0].Raw() != int64(7) || ids[1].Raw() != "7" {
		t.Errorf("%v", ids)
	}
}

// Whatever a client posts, there is an error or at least one message, the body
// stays as it was, and no two requests that differ in id or session have one key.
func FuzzParseMessages(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}]`))
	f.Add([]byte(`[`))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0000\",\"method\":\"m\"}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		ms, err := parseMessages(body)
		if !bytes.Equal(body, before) {
			t.Fatalf("%q became %q", before, body)
		}
		if (err == nil) != (ms != nil) || ms != nil && len(ms.list) == 0 {
			t.Fatalf("%q: %+v, %v", body, ms, err)
		}
		if ms == nil {
			return
		}
		keys := map[string]jsonrpc.ID{}
		for _, id := range append(ms.cancelled(), ms.id()) {
			for _, session := range []string{"S", "T"} {
				key, err := flightKey("p", session, id)
				if err != nil {
					t.Fatal(err)
				}
				if other, ok := keys[session+key]; ok && other != id {
					t.Fatalf("%v and %v have one key", other, id)
				}
				keys[session+key] = id
			}
		}
	})
}
