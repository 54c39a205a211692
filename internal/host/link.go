package host

import (
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/internal/wasmbin"
	"github.com/sandboxd/sandboxd/runtime"
	"github.com/sandboxd/sandboxd/tool"
)

// CheckLink refuses a package whose module could not be called.
func CheckLink(p *tool.Package) error {
	if err := runtime.CheckLink(p.Module, p.Manifest.ABI); err != nil {
		return linkFault(p, err)
	}
	return nil
}

// linkFault says what to write in the manifest, where that is what is wrong
// with a module that does not link.
func linkFault(p *tool.Package, err error) error {
	m, parseErr := wasmbin.Parse(p.Module)
	if parseErr != nil {
		return fmt.Errorf("package %s: %w", p.Manifest.Name, err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(m.Exports, func(e wasmbin.Export) bool { return e.Name == name })
	}
	switch command := p.Manifest.ABI == tool.Command; {
	case command && !has("_start") && has("sandboxd_call"):
		return p.Manifest.Fault("abi", "the module exports sandboxd_call and no _start", "write abi: reactor", err)
	case !command && !has("sandboxd_call") && has("_start"):
		return p.Manifest.Fault("abi", "the module exports _start and no sandboxd_call", "write abi: command", err)
	case command && !has("_start") && has("_initialize"):
		return p.Manifest.Fault("abi", "the module is a library: it exports _initialize and no _start", "build it as a program, without -buildmode=c-shared", err)
	}
	return fmt.Errorf("package %s: %w; docs/abi.md says what abi %s needs", p.Manifest.Name, err, p.Manifest.ABI)
}
