package wasmbin

import (
	"bytes"
	"fmt"
	"strings"
)

// ValueType is a type of a value, as its byte in the binary format.
type ValueType byte

// The value types of the core specification 2.0.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// String returns the type as the text format writes it.
func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return fmt.Sprintf("type(%#02x)", byte(t))
}

// FuncType is the type of a function.
type FuncType struct{ Params, Results []ValueType }

// String returns the type as (i32,i32)->(i64).
func (t FuncType) String() string {
	list := func(types []ValueType) string {
		names := make([]string, len(types))
		for i, v := range types {
			names[i] = v.String()
		}
		return "(" + strings.Join(names, ",") + ")"
	}
	return list(t.Params) + "->" + list(t.Results)
}

// Kind says what is imported or exported.
type Kind byte

// The kinds of imports and exports.
const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// String returns "func", "table", "memory" or "global".
func (k Kind) String() string {
	switch k {
	case KindFunc:
		return "func"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return fmt.Sprintf("kind(%d)", byte(k))
}

// Limits are the size of a memory in pages of 64 KiB, or of a table in entries.
type Limits struct {
	Min    uint32
	Max    uint32 // without meaning where HasMax is false
	HasMax bool
}

// Table is a table, imported or declared.
type Table struct {
	Elem     ValueType
	Limits   Limits
	Imported bool
}

// Memory is a memory, imported or declared.
type Memory struct {
	Limits   Limits // pages of 64 KiB
	Imported bool
}

// Import is something that a module needs from its host.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         FuncType  // of a function
	Limits       Limits    // of a table or memory
	Value        ValueType // of a global, or of the elements of a table
	Mutable      bool      // of a global
}

// Export is something that a module offers.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
	Type  FuncType // of a function
}

// Custom is a custom section. Data aliases the module.
type Custom struct {
	Name string
	Data []byte
}

// Module is what a binary declares, in the order of the binary.
type Module struct {
	Imports   []Import
	Exports   []Export
	Memories  []Memory
	Tables    []Table
	Custom    []Custom
	Functions int  // declared functions, without the imported ones
	Start     bool // it has a start function
}

// ExportedFunctions returns the exports that are functions.
func (m *Module) ExportedFunctions() []Export {
	var list []Export
	for _, e := range m.Exports {
		if e.Kind == KindFunc {
			list = append(list, e)
		}
	}
	return list
}

// CustomSection returns the bytes of the first custom section of that name,
// and how many there are of it.
func (m *Module) CustomSection(name string) (data []byte, n int) {
	for _, c := range m.Custom {
		if c.Name != name {
			continue
		}
		if n == 0 {
			data = c.Data
		}
		n++
	}
	return data, n
}

// Sections of a module (5.5.2), in the order in which they may come, except
// that the data count stands before the code.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
)

var (
	header    = []byte("\x00asm\x01\x00\x00\x00")
	component = []byte{0x0d, 0x00, 0x01, 0x00}
)

// section is one section of a module: body is what its size covers.
type section struct {
	id         byte
	start, off int // of the section and of its body, in the module
	body       []byte
}

// split checks the header and cuts a module into its sections, which alias it.
func split(b []byte) ([]section, error) {
	if len(b) >= 8 && bytes.Equal(b[:4], header[:4]) && bytes.Equal(b[4:8], component) {
		return nil, ErrComponent
	}
	if !bytes.HasPrefix(b, header) {
		return nil, &FormatError{Problem: "not a WebAssembly module of version 1: it does not begin with 00 61 73 6d 01 00 00 00"}
	}
	r := &reader{b: b, pos: len(header)}
	var list []section
	rank := 0
	for r.left() > 0 && r.err == nil {
		start := r.pos
		id := r.byte()
		if id > sectionDataCount {
			r.failf("section %d is unknown", id)
		}
		if id != sectionCustom {
			next := order(id)
			if next <= rank {
				r.failf("section %d is out of order", id)
			}
			rank = next
		}
		size := uint64(r.u32())
		off := r.pos
		list = append(list, section{id: id, start: start, off: off, body: r.take(size)})
	}
	return list, r.err
}

// order returns the place of a section among the others, from 1.
func order(id byte) int {
	switch {
	case id == sectionDataCount:
		return sectionCode
	case id >= sectionCode:
		return int(id) + 1
	}
	return int(id)
}

// Parse reads a module. Its errors are [ErrComponent], a [*FormatError], or a
// [*LimitError] where the module passes a limit of the implementation. It
// allocates no more than a small multiple of len(b).
func Parse(b []byte) (*Module, error) {
	p, err := parse(b)
	if err != nil {
		return nil, err
	}
	return &p.module, nil
}
