package wasmbin

// Surface reads what a module declares, as [Parse] does, and passes over its code
// and what fills its memories and tables. That costs next to nothing, and is not
// enough to compile the module: how much its code asks of a compiler is not looked
// at. Its errors are those of Parse.
func Surface(b []byte) (*Module, error) {
	p, err := parseSections(b, []byte{sectionElement, sectionCode, sectionData})
	if err != nil {
		return nil, err
	}
	return &p.module, nil
}
