package wasmtest

// Where a guest of [Program] keeps things in its memory.
const (
	atFD     = 8
	atIovec  = 16
	atResult = 32
	atPath   = 1024
	atText   = 2048
)

// What the parts of a [Program] write.
const (
	Said    = "said by the guest"
	Created = "new.txt" // below the first volume
)

// Imports are the functions that the parts of a [Program] call.
var Imports = []Func{
	{Import: "wasi_snapshot_preview1", Name: "path_open", Params: []byte{I32, I32, I32, I32, I32, I64, I64, I32, I32}, Results: []byte{I32}},
	{Import: "wasi_snapshot_preview1", Name: "fd_write", Params: []byte{I32, I32, I32, I32}, Results: []byte{I32}},
	{Import: "wasi_snapshot_preview1", Name: "proc_exit", Params: []byte{I32}},
	{Import: "wasi_snapshot_preview1", Name: "clock_time_get", Params: []byte{I32, I64, I32}, Results: []byte{I32}},
}

// Program assembles a command (WASI preview 1) that does the parts in order.
func Program(parts ...[]byte) []byte {
	return Module{
		Funcs:  append(append([]Func{}, Imports...), Func{Name: "_start", Body: Seq(parts...)}),
		Memory: [2]uint32{1, 2},
		Data:   ProgramData(),
	}.Encode()
}

// ProgramData is what the memory of a [Program] holds at its start.
func ProgramData() map[uint32][]byte {
	return map[uint32][]byte{atPath: []byte(Created), atText: []byte(Said)}
}

// Create makes the file [Created].
func Create() []byte {
	const rightWrite, oflagCreate = 1 << 6, 1
	return Seq(I32Const(3), I32Const(0), I32Const(atPath), I32Const(int32(len(Created))), I32Const(oflagCreate),
		I64Const(rightWrite), I64Const(rightWrite), I32Const(0), I32Const(atFD), Call(0), Drop)
}

// Say writes [Said] to a descriptor.
func Say(fd int32) []byte {
	store := func(at, v int32) []byte { return Seq(I32Const(at), I32Const(v), []byte{0x36, 2, 0}) }
	return Seq(store(atIovec, atText), store(atIovec+4, int32(len(Said))),
		I32Const(fd), I32Const(atIovec), I32Const(1), I32Const(atResult), Call(1), Drop)
}

// Exit ends with a status.
func Exit(code int32) []byte { return Seq(I32Const(code), Call(2)) }

// Work runs for as long, by the monotonic clock. To sleep would take a tool no time.
func Work(nanoseconds int64) []byte {
	const atBegin, atNow = 160, 168
	read := func(at int32) []byte { return Seq(I32Const(1), I64Const(1), I32Const(at), Call(3), Drop) }
	load := func(at int32) []byte { return Seq(I32Const(at), []byte{0x29, 3, 0}) }
	return Seq(read(atBegin),
		Loop, read(atNow), load(atNow), load(atBegin), []byte{0x7d}, // i64.sub
		I64Const(nanoseconds), []byte{0x53}, BrIf(0), End) // i64.lt_s
}

// Where a [Reactor] keeps things in its memory.
const (
	atAnswer      = 4096
	atDescription = 8192
	atRequest     = 1 << 16
)

// Reactor assembles a reactor that says so what it has, does the parts at its start,
// and answers every call with [Said].
func Reactor(description string, parts ...[]byte) []byte {
	packed := func(at int, b string) []byte { return I64Const(int64(at)<<32 | int64(len(b))) }
	answer := `{"content":[{"type":"text","text":"` + Said + `"}]}`
	data := ProgramData()
	data[atAnswer], data[atDescription] = []byte(answer), []byte(description)
	return Module{
		Funcs: append(append([]Func{}, Imports...),
			Func{Name: "_initialize", Body: Seq(parts...)},
			Func{Name: "sandboxd_describe", Results: []byte{I64}, Body: packed(atDescription, description)},
			Func{Name: "sandboxd_alloc", Params: []byte{I32}, Results: []byte{I32}, Body: I32Const(atRequest)},
			Func{Name: "sandboxd_call", Params: []byte{I32, I32}, Results: []byte{I64}, Body: packed(atAnswer, answer)}),
		Memory: [2]uint32{2, 2},
		Data:   data,
	}.Encode()
}
