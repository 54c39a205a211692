package wasmbin

// What an engine keeps in each instance, in bytes (wazero 1.12, measured).
const (
	globalBytes  = 96
	segmentBytes = 32
	elementBytes = 48 // with the object that a reference is to
	entryBytes   = 8  // of a table
)

// Kept returns how many bytes of the host each instance of a module takes for what
// the module declares, besides its memory, before any of its code runs. Errors are those
// of [Surface].
func Kept(b []byte) (uint64, error) {
	p, err := parseSections(b, []byte{sectionCode})
	if err != nil {
		return 0, err
	}
	n := globalBytes*uint64(p.globals) + segmentBytes*p.segments + elementBytes*p.elements
	for _, t := range p.module.Tables {
		n += entryBytes * uint64(t.Limits.Min)
	}
	return n, nil
}
