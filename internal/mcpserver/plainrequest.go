package mcpserver

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// plainRequest returns the request that a body is, without what the SDK's reader takes
// for it, where the two cannot differ: its members are those of a request (JSON-RPC
// 2.0, section 4), each there once, and written as programs write them. It returns nil
// for any other body, which may be a request all the same. Params are part of body,
// which is valid JSON.
func plainRequest(body []byte) *jsonrpc.Request {
	r := &jsonrpc.Request{}
	var version, id, method []byte
	rest := bytes.TrimLeft(body, jsonSpace)
	for first := true; ; first = false {
		if len(rest) == 0 || first && rest[0] != '{' || !first && rest[0] != ',' {
			break
		}
		key, value, after := member(rest[1:])
		rest = after
		var into *[]byte
		switch string(key) {
		case `"jsonrpc"`:
			into = &version
		case `"id"`:
			into = &id
		case `"method"`:
			into = &method
		case `"params"`:
			into = (*[]byte)(&r.Params)
		default:
			return nil
		}
		if *into != nil {
			return nil
		}
		*into = value
	}
	ok := string(version) == `"2.0"` && simpleText(method) && (r.Params == nil || r.Params[0] == '{' || r.Params[0] == '[')
	if !ok || !setID(r, id) {
		return nil
	}
	r.Method = string(method[1 : len(method)-1])
	return r
}

// setID sets the id, unless it is written in some other way than most are.
func setID(r *jsonrpc.Request, id []byte) bool {
	const exact = 15 // digits, which floats hold
	var v any
	switch {
	case id == nil:
		return true
	case simpleText(id):
		v = string(id[1 : len(id)-1])
	case len(id) <= exact:
		n, err := strconv.Atoi(string(id))
		if err != nil {
			return false
		}
		v = float64(n)
	}
	var err error
	r.ID, err = jsonrpc.MakeID(v)
	return err == nil && r.ID.IsValid()
}

const jsonSpace = " \t\r\n"

// simpleText reports whether a value is a text of printable ASCII, not empty, without
// escapes.
func simpleText(v []byte) bool {
	if len(v) < 3 || v[0] != '"' {
		return false
	}
	for _, c := range v {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

// member returns the key and the value that b begins with, of an object of valid JSON,
// and what follows. An empty object has an empty key.
func member(b []byte) (key, value, rest []byte) {
	if b = bytes.TrimLeft(b, jsonSpace); b[0] != '"' {
		return nil, nil, b
	}
	key, rest = split(b)
	value, rest = split(bytes.TrimLeft(bytes.TrimLeft(rest, jsonSpace)[1:], jsonSpace))
	return key, value, bytes.TrimLeft(rest, jsonSpace)
}

// split returns the value of valid JSON that b begins with, and what follows.
func split(b []byte) (value json.RawMessage, rest []byte) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += textEnd(b[i+1:])
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			continue
		default: // of a number or a word
			for i+1 < len(b) && bytes.IndexByte([]byte(`,]}`+jsonSpace), b[i+1]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return json.RawMessage(b[:i+1]), b[i+1:]
		}
	}
	return b, nil
}

// textEnd returns where the text ends whose first byte b begins with: after so many
// bytes there is its quote.
func textEnd(b []byte) int {
	for i := 0; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		escaped := 0
		for escaped < n && b[i+n-1-escaped] == '\\' {
			escaped++
		}
		i += n
		if escaped%2 == 0 {
			return i + 1
		}
	}
}
