package mcpserver

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzPlainRequest: a body that is taken for a plain request is one to the SDK, and
// the same one; what programs write is plain.
func FuzzPlainRequest(f *testing.F) {
	for _, in := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"\\\"}{][,:","y":[1,{"z":null}]}}}`,
		` { "jsonrpc" : "2.0" , "method" : "notifications/cancelled" , "params" : { } } `,
		`{"method":"m","jsonrpc":"2.0","id":"a b"}`, `{"jsonrpc":"2.0","id":-1,"method":"m","params":[]}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, `{"jsonrpc":"2.0","id":1e3,"method":"m"}`,
		`{"jsonrpc":"2.0","id":1,"Method":"a","method":"m"}`, `{"jsonrpc":"2.0","id":1,"method":"a","method":"m"}`, `{"jsonrpc":"2.0","id":1,"m\u0065thod":"m"}`,
		`{"jsonrpc":"2.0","id":null,"method":"m"}`, `{"jsonrpc":"2.0","id":true,"method":"m"}`, `{"jsonrpc":"1.0","id":1,"method":"m"}`, `{"jsonrpc":"2.0","id":1,"method":""}`,
		`{"jsonrpc":"2.0","id":"","method":"m","params":null}`, `{}`, `[]`, `1`, `"x"`, `{"jsonrpc":"2.0","id":12345678901234567890,"method":"m"}`, `{"":1}`, `{"jsonrpc":"2.0","id":-0,"method":"m"}`,
		"\xef\xbb\xbf{}", `{"jsonrpc":"2.0","method":"m","params":{"a":"\\"}}`, `{"jsonrpc":"2.0","method":"m","params":{"\"":"\\\\"},"id":7}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		was := bytes.Clone(body)
		r := plainRequest(body)
		if !bytes.Equal(was, body) {
			t.Fatalf("%q was changed", was)
		}
		if r == nil {
			return
		}
		m, err := jsonrpc.DecodeMessage(body)
		want, ok := m.(*jsonrpc.Request)
		if err != nil || !ok || r.Method != want.Method || r.ID != want.ID || !bytes.Equal(r.Params, want.Params) {
			t.Fatalf("%q is %+v, want %+v, %v", body, r, m, err)
		}
	})
}

// TestPlainRequests: what clients send is plain.
func TestPlainRequests(t *testing.T) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"\\\"}{][,:","y":[1,{"z":null}]}}}`,
		"{\n \"method\": \"tools/list\",\n \"jsonrpc\": \"2.0\",\n \"id\": \"c-7\"\n}\n",
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
	} {
		if plainRequest([]byte(body)) == nil {
			t.Errorf("not plain: %s", body)
		}
	}
}
