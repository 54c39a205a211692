package wasi

import "github.com/tetratelabs/wazero/api"

// Signature returns the type of a function of the interface, and whether there
// is one of that name.
func Signature(name string) (params, results []api.ValueType, ok bool) {
	for _, f := range functions() {
		if f.name != name {
			continue
		}
		if name != procExitName {
			results = []api.ValueType{i32}
		}
		return f.params, results, true
	}
	return nil, nil, false
}
