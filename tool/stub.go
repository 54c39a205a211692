package tool

import "errors"

// STUB: replaced by the implementation.

// Builder builds the module of a package that has a source, and returns its bytes.
type Builder func(dir string, s Source) ([]byte, error)

// Load reads the package at path: a folder with a tool.yaml, or a .wasm file
// with the manifest beside it (tool.yaml) or inside it (custom section "tool.yaml").
// build is called where the manifest has a source; nil refuses such packages.
func Load(path string, build Builder) (*Package, error) { return nil, errors.New("stub") }

// ParseManifest parses and validates a tool.yaml. file names it in errors.
func ParseManifest(file string, b []byte) (*Manifest, error) { return nil, errors.New("stub") }

// ParseDescription parses and validates what a module says about itself:
// {"tools": [...]}, each as in MCP's Tool.
func ParseDescription(b []byte) ([]Definition, error) { return nil, errors.New("stub") }
