package runtime

import (
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
	"github.com/sandboxd/sandboxd/runtime/wasi"
	"github.com/sandboxd/sandboxd/tool"
)

// Prospect is what is known of a package's instances without running anything.
type Prospect struct {
	Kind   Kind
	Reason Reason
	// Detail says where in the module the reason is, or what could still make the
	// kind [KindNew] when the package is loaded. It may be empty.
	Detail string
}

// ProspectOf looks at a package's module. Errors are those of rewriting it.
func ProspectOf(p *tool.Package) (Prospect, error) {
	_, s, err := guard(p.Module, p.Manifest.Limits)
	if err != nil {
		return Prospect{}, err
	}
	reactor := p.Manifest.ABI == tool.Reactor
	switch {
	case s.why != "":
		return Prospect{KindNew, s.why, s.where}, nil
	case !reactor:
		return Prospect{Kind: KindInstantiated}, nil
	}
	m, err := wasmbin.Surface(p.Module)
	if err != nil {
		return Prospect{}, err
	}
	r := Prospect{Kind: KindInitialized}
	draws := slices.ContainsFunc(m.Imports, func(i wasmbin.Import) bool { return i.Module == wasi.ModuleName && i.Name == "random_get" })
	if draws && !s.reseeds {
		r.Detail = fmt.Sprintf("%s where its start-up code draws random numbers, as it exports no %s", KindNew, reseedExport)
	}
	return r, nil
}
