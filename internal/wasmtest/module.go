// Package wasmtest assembles small WebAssembly modules for tests: guests that
// no compiler would write.
package wasmtest

// Value types (core specification, binary format, "Types").
const (
	I32 byte = 0x7f
	I64 byte = 0x7e
	F32 byte = 0x7d
	F64 byte = 0x7c
)

// Func is one function of a module.
type Func struct {
	Import  string // module of an import; empty: defined here
	Name    string // name of the import, or of the export; empty: not exported
	Params  []byte
	Results []byte
	Locals  []byte // one value type each
	Body    []byte // instructions without the final end
}

// Global is a global of a module. Mutable ones that are exported can be set by a host.
type Global struct {
	Name    string // of its export; empty: not exported
	Type    byte
	Mutable bool
	Init    []byte // one instruction, without the end
}

// Module is a module to be assembled. Imported functions come first and take
// the first indices.
type Module struct {
	Funcs    []Func
	Memory   [2]uint32 // minimum and maximum in pages; a maximum of 0: none
	NoMemory bool
	Table    [2]uint32 // minimum and maximum; no table where both are 0
	Globals  []Global
	Start    int // index of the start function plus 1
	Data     map[uint32][]byte
	Customs  map[string][]byte
}

// Encode returns the module in the binary format.
func (m Module) Encode() []byte {
	b := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	b = section(b, 1, m.types())
	b = section(b, 2, m.imports())
	b = section(b, 3, m.functions())
	if m.Table != [2]uint32{} {
		b = section(b, 4, append([]byte{1, 0x70}, limits(m.Table)...))
	}
	if !m.NoMemory {
		b = section(b, 5, append([]byte{1}, limits(m.Memory)...))
	}
	b = section(b, 6, m.globals())
	b = section(b, 7, m.exports())
	if m.Start > 0 {
		b = section(b, 8, Uint(uint64(m.Start-1)))
	}
	b = section(b, 10, m.code())
	b = section(b, 11, m.data())
	for name, bytes := range m.Customs {
		b = section(b, 0, append(str(name), bytes...))
	}
	return b
}

func (m Module) types() []byte {
	b := Uint(uint64(len(m.Funcs)))
	for _, f := range m.Funcs {
		b = append(b, 0x60)
		b = append(append(b, Uint(uint64(len(f.Params)))...), f.Params...)
		b = append(append(b, Uint(uint64(len(f.Results)))...), f.Results...)
	}
	return b
}

func (m Module) imports() []byte {
	var b []byte
	n := uint64(0)
	for i, f := range m.Funcs {
		if f.Import == "" {
			continue
		}
		n++
		b = append(append(b, str(f.Import)...), str(f.Name)...)
		b = append(append(b, 0), Uint(uint64(i))...)
	}
	return append(Uint(n), b...)
}

func (m Module) functions() []byte {
	var b []byte
	n := uint64(0)
	for i, f := range m.Funcs {
		if f.Import == "" {
			n++
			b = append(b, Uint(uint64(i))...)
		}
	}
	return append(Uint(n), b...)
}

func (m Module) globals() []byte {
	b := Uint(uint64(len(m.Globals)))
	for _, g := range m.Globals {
		mutable := byte(0)
		if g.Mutable {
			mutable = 1
		}
		b = append(append(append(b, g.Type, mutable), g.Init...), 0x0b)
	}
	return b
}

func (m Module) exports() []byte {
	var b []byte
	n := uint64(0)
	for i, f := range m.Funcs {
		if f.Import == "" && f.Name != "" {
			n++
			b = append(append(append(b, str(f.Name)...), 0), Uint(uint64(i))...)
		}
	}
	for i, g := range m.Globals {
		if g.Name != "" {
			n++
			b = append(append(append(b, str(g.Name)...), 3), Uint(uint64(i))...)
		}
	}
	if !m.NoMemory {
		n++
		b = append(append(b, str("memory")...), 2, 0)
	}
	return append(Uint(n), b...)
}

func (m Module) code() []byte {
	var b []byte
	n := uint64(0)
	for _, f := range m.Funcs {
		if f.Import != "" {
			continue
		}
		n++
		body := Uint(uint64(len(f.Locals)))
		for _, l := range f.Locals {
			body = append(body, 1, l)
		}
		body = append(append(body, f.Body...), 0x0b)
		b = append(append(b, Uint(uint64(len(body)))...), body...)
	}
	return append(Uint(n), b...)
}

func (m Module) data() []byte {
	if len(m.Data) == 0 {
		return nil
	}
	b := Uint(uint64(len(m.Data)))
	for at, bytes := range m.Data {
		b = append(b, 0)
		b = append(append(b, I32Const(int32(at))...), 0x0b)
		b = append(append(b, Uint(uint64(len(bytes)))...), bytes...)
	}
	return b
}

func section(b []byte, id byte, body []byte) []byte {
	if len(body) == 0 || len(body) == 1 && body[0] == 0 {
		return b
	}
	b = append(append(b, id), Uint(uint64(len(body)))...)
	return append(b, body...)
}

func limits(l [2]uint32) []byte {
	if l[1] == 0 {
		return append([]byte{0}, Uint(uint64(l[0]))...)
	}
	return append(append([]byte{1}, Uint(uint64(l[0]))...), Uint(uint64(l[1]))...)
}

func str(s string) []byte { return append(Uint(uint64(len(s))), s...) }
