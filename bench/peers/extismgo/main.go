//go:build wasip1

// Command extismgo is a plug-in of Extism with the tools echo and
// read_text_file. It reads the request of sandboxd's ABI and answers as that
// wants it, with encoding/json on both sides as its Go guests do.
package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u64
func inputLoad64(at uint64) uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoad8(at uint64) uint32

//go:wasmimport extism:host/env alloc
func alloc(n uint64) uint64

//go:wasmimport extism:host/env store_u64
func store64(at, v uint64)

//go:wasmimport extism:host/env store_u8
func store8(at uint64, v uint32)

//go:wasmimport extism:host/env output_set
func outputSet(at, n uint64)

type request struct {
	Tool      string
	Arguments json.RawMessage
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type result struct {
	Content []content `json:"content"`
}

func main() {}

//go:wasmexport call
func call() int32 {
	var r request
	if err := json.Unmarshal(input(), &r); err != nil {
		return 1
	}
	text, err := answer(r)
	if err != nil {
		return 2
	}
	b, err := json.Marshal(result{[]content{{"text", text}}})
	if err != nil {
		return 3
	}
	output(b)
	return 0
}

func answer(r request) (string, error) {
	var in struct{ Text, Path string }
	if err := json.Unmarshal(r.Arguments, &in); err != nil {
		return "", err
	}
	if r.Tool == "echo" {
		return in.Text, nil
	}
	b, err := os.ReadFile(in.Path)
	return string(b), err
}

// input copies what the host was given.
func input() []byte {
	n := inputLength()
	b := make([]byte, n)
	at := uint64(0)
	for ; at+8 <= n; at += 8 {
		binary.LittleEndian.PutUint64(b[at:], inputLoad64(at))
	}
	for ; at < n; at++ {
		b[at] = byte(inputLoad8(at))
	}
	return b
}

// output copies the answer to the host.
func output(b []byte) {
	n := uint64(len(b))
	to, at := alloc(n), uint64(0)
	for ; at+8 <= n; at += 8 {
		store64(to+at, binary.LittleEndian.Uint64(b[at:]))
	}
	for ; at < n; at++ {
		store8(to+at, uint32(b[at]))
	}
	outputSet(to, n)
}
