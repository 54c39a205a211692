package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// ParseJSON parses one JSON value. What it returns has distinct keys. file names
// it in errors, which are all an [*Error].
func ParseJSON(file string, b []byte) (*Node, error) {
	j := &jsonReader{file: file, doc: b, line: 1}
	if len(b) > MaxDocument {
		return nil, j.errorf("larger than 1 MiB", "shorten it")
	}
	if !utf8.Valid(b) {
		return nil, j.errorf("not UTF-8", "encode it as UTF-8")
	}
	j.dec = json.NewDecoder(bytes.NewReader(b))
	j.dec.UseNumber()
	n, err := j.value(nil, 0)
	if err != nil {
		return nil, err
	}
	if _, err := j.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, j.errorf("more than one JSON value", "write one object")
	}
	return n, nil
}

type jsonReader struct {
	file string
	doc  []byte
	dec  *json.Decoder
	// The place of the last token, counted on from the one before it.
	offset, line, start int
}

// place moves line and start on to the end of the token read last.
func (j *jsonReader) place() (line, column int) {
	end := len(j.doc)
	if j.dec != nil {
		end = min(int(j.dec.InputOffset()), end)
	}
	for ; j.offset < end; j.offset++ {
		if j.doc[j.offset] == '\n' {
			j.line, j.start = j.line+1, j.offset+1
		}
	}
	return j.line, max(1, end-j.start)
}

func (j *jsonReader) errorf(problem, mend string) *Error {
	e := &Error{File: j.file, Problem: problem, Mend: mend}
	if j.dec != nil {
		e.Line, e.Column = j.place()
	}
	return e
}

func (j *jsonReader) token() (json.Token, error) {
	t, err := j.dec.Token()
	if err != nil {
		return nil, j.errorf("not JSON: "+err.Error(), "write one JSON object")
	}
	return t, nil
}

// value reads the value that the trail leads to.
func (j *jsonReader) value(tr *Trail, depth int) (*Node, error) {
	t, err := j.token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, j.errorf(fmt.Sprintf("nested deeper than %d levels", maxDepth), "flatten it").below(tr)
	}
	n := &Node{}
	n.Line, n.Column = j.place()
	switch v := t.(type) {
	case nil:
		n.Kind = Null
	case bool:
		n.Kind, n.Truth = Bool, v
	case string:
		n.Kind, n.Text = Text, v
	case json.Number:
		text, ok := number(v.String())
		if !ok {
			return nil, j.errorf("the number "+Quote(v.String())+" is out of range", "write a smaller one").below(tr)
		}
		n.Kind, n.Text = Number, text
	case json.Delim:
		if v == '[' {
			return n, j.list(n, tr, depth)
		}
		return n, j.object(n, tr, depth)
	}
	return n, nil
}

func (j *jsonReader) list(n *Node, tr *Trail, depth int) error {
	n.Kind = List
	for i := 0; j.dec.More(); i++ {
		c, err := j.value(&Trail{up: tr, index: i}, depth+1)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, c)
	}
	_, err := j.token()
	return err
}

func (j *jsonReader) object(n *Node, tr *Trail, depth int) error {
	n.Kind = Map
	seen := map[string]bool{}
	for j.dec.More() {
		t, err := j.token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return j.errorf("a key that is not text", "put it in quotes")
		}
		if len(key) > maxKey {
			return j.errorf(fmt.Sprintf("a key longer than %d bytes", maxKey), "shorten it").below(tr)
		}
		entryTrail := &Trail{up: tr, key: key, index: -1}
		if seen[key] {
			return j.errorf("is there twice", "remove one").below(entryTrail)
		}
		seen[key] = true
		line, column := j.place()
		c, err := j.value(entryTrail, depth+1)
		if err != nil {
			return err
		}
		n.Entries = append(n.Entries, Entry{key, line, column, c})
	}
	_, err := j.token()
	return err
}
