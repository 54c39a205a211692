package main

import (
	"slices"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
)

// importGroup is what a module imports from one other.
type importGroup struct {
	Module string   `json:"module"`
	Names  []string `json:"names"`
}

// imports returns what the module needs from its host, by module.
func imports(module []byte) ([]importGroup, error) {
	m, err := wasmbin.Parse(module)
	if err != nil {
		return nil, err
	}
	groups := []importGroup{}
	for _, i := range m.Imports {
		k := slices.IndexFunc(groups, func(g importGroup) bool { return g.Module == i.Module })
		if k < 0 {
			k = len(groups)
			groups = append(groups, importGroup{Module: i.Module})
		}
		if !slices.Contains(groups[k].Names, i.Name) { // Go's compiler repeats some
			groups[k].Names = append(groups[k].Names, i.Name)
		}
	}
	return groups, nil
}
