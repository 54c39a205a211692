package tool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandboxd/sandboxd/internal/regular"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/internal/wasmbin"
)

// Builder builds the module of a package that has a source, and returns its
// bytes. dir is the folder of the manifest; the ABI decides how a source is
// linked.
type Builder func(dir string, s Source, abi ABI) ([]byte, error)

const (
	manifestName = "tool.yaml"
	maxModule    = 128 << 20 // bytes
)

// ErrModule is matched under errors.Is where a module is not one that can be
// run: too large, not WebAssembly, a component.
var ErrModule = errors.New("module refused")

// Load reads the package at path: a folder with a tool.yaml, or a .wasm file
// with the manifest beside it (tool.yaml, whose module names the file) or
// inside it (custom section "tool.yaml"). Where both are there for the file
// they must say the same. build is called where the manifest has a source; nil
// refuses such packages with [ErrNoBuilder].
//
// Nothing outside the folder is read, whatever links in it say. Errors about
// what the manifest says are [*ManifestError]; those about the module match
// [ErrModule], those about the package's files [ErrFiles]. Each is one line.
func Load(path string, build Builder) (*Package, error) {
	return Loader{Build: build}.Load(path)
}

// Loader reads packages. The zero value reads all of each module, and refuses
// packages that have to be built.
type Loader struct {
	Build Builder // nil: packages with a source are refused with [ErrNoBuilder]
	// SurfaceOnly leaves the code of a module unread: for those who have it read
	// before they compile it, as the engine does. Default: all of it is read.
	SurfaceOnly bool
}

// Load is [Load] by the loader's settings.
func (l Loader) Load(path string) (*Package, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", path, pathless(err))
	}
	var p *Package
	switch {
	case info.IsDir():
		p, err = l.folder(path)
	case strings.EqualFold(filepath.Ext(path), ".wasm"):
		p, err = l.file(path)
	default:
		err = fmt.Errorf("package %s: neither a folder nor a .wasm file; name the folder that holds tool.yaml", path)
	}
	if err != nil {
		return nil, err
	}
	if err := p.digest(); err != nil {
		return nil, fmt.Errorf("package %s: %w", path, err)
	}
	return p, nil
}

func (l Loader) folder(dir string) (*Package, error) {
	root, err := regular.Folder(dir)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", dir, pathless(err))
	}
	defer root.Close()
	file := filepath.Join(dir, manifestName)
	b, err := read(root, manifestName, strictyaml.MaxDocument)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; a package is a folder with a tool.yaml", file, err)
	}
	m, err := ParseManifest(file, b)
	if err != nil {
		return nil, err
	}
	p := &Package{Manifest: *m, Dir: dir}
	where := filepath.Join(dir, filepath.FromSlash(m.Module))
	if m.Source == nil {
		if p.Module, err = readModule(root, filepath.FromSlash(m.Module)); errors.Is(err, os.ErrNotExist) {
			return nil, m.Fault("module", "there is no "+strictyaml.OneLine(m.Module), modulesIn(dir), err)
		}
	} else {
		where = file + ": source"
		p.Module, err = buildModule(root, dir, m, l.Build)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if _, err = l.check(where, p.Module); err != nil {
		return p, err
	}
	return p, p.withFiles(root)
}

// modulesIn says which modules a folder has, as a mend for a manifest that names
// another.
func modulesIn(dir string) string {
	const most = 5
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if strings.EqualFold(filepath.Ext(e.Name()), ".wasm") {
			names = append(names, strictyaml.Clip(e.Name()))
		}
	}
	switch {
	case len(names) == 0:
		return "the folder has no .wasm file; build one, or write source: {language: go, dir: .}"
	case len(names) > most:
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return "the folder has " + strings.Join(names, ", ")
}

func buildModule(root *os.Root, dir string, m *Manifest, build Builder) ([]byte, error) {
	if build == nil {
		return nil, fmt.Errorf("%w; build the package first", ErrNoBuilder)
	}
	info, err := root.Stat(filepath.FromSlash(m.Source.Dir))
	if err != nil {
		return nil, fmt.Errorf("dir: %w", pathless(err))
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("dir: %s is not a folder", m.Source.Dir)
	}
	b, err := build(dir, *m.Source, m.ABI)
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	if len(b) > maxModule {
		return nil, fmt.Errorf("%w: %w", ErrModule, regular.TooLarge(maxModule))
	}
	return b, nil
}

// file reads a module with its manifest inside or beside it.
func (l Loader) file(path string) (*Package, error) {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	dir = filepath.Clean(dir)
	root, err := regular.Folder(dir)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", path, pathless(err))
	}
	defer root.Close()
	module, err := readModule(root, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	parsed, err := l.check(path, module)
	if err != nil {
		return nil, err
	}
	inside, err := embedded(path, parsed)
	if err != nil {
		return nil, err
	}
	beside, err := besides(root, dir, name, inside != nil)
	if err != nil {
		return nil, err
	}
	if inside == nil {
		p := &Package{Manifest: *beside, Dir: dir, Module: module}
		return p, p.withFiles(root)
	}
	inside.Module, inside.Source = filepath.ToSlash(name), nil
	if beside != nil {
		if err := same(path, inside, beside); err != nil {
			return nil, err
		}
	}
	p := &Package{Manifest: *inside, Dir: dir, Module: module}
	return p, p.withFiles(root)
}

// embedded returns the manifest inside a module, or nil.
func embedded(path string, module *wasmbin.Module) (*Manifest, error) {
	data, n := module.CustomSection(manifestName)
	switch n {
	case 0:
		return nil, nil
	case 1:
		return parseManifest(path+"#"+manifestName, data, true)
	}
	return nil, fmt.Errorf("%s: %d custom sections %s; keep one", path, n, manifestName)
}

// besides returns the manifest in the folder of a module that is named by it.
// Where the module brings its own, a manifest for another module is left alone.
func besides(root *os.Root, dir, name string, optional bool) (*Manifest, error) {
	file := filepath.Join(dir, manifestName)
	b, err := read(root, manifestName, strictyaml.MaxDocument)
	if errors.Is(err, os.ErrNotExist) {
		if optional {
			return nil, nil
		}
		return nil, fmt.Errorf("%s: no %s beside it or inside it; name the package's folder, or add one", filepath.Join(dir, name), manifestName)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	m, err := ParseManifest(file, b)
	if err != nil {
		return nil, err
	}
	if m.Module == filepath.ToSlash(name) {
		return m, nil
	}
	if optional {
		return nil, nil
	}
	return nil, &ManifestError{File: file, Field: "module", Problem: "does not name " + strictyaml.Quote(name), Mend: "name the package's folder, or write module: " + strictyaml.OneLine(name)}
}

// same refuses two manifests for one module that say different things.
func same(path string, inside, beside *Manifest) error {
	a, err := inside.Canonical()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	b, err := beside.Canonical()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if string(a) != string(b) {
		return fmt.Errorf("%s: the tool.yaml inside it and the one beside it differ; remove one, or build the package again", path)
	}
	return nil
}

func (l Loader) check(where string, b []byte) (*wasmbin.Module, error) {
	read := wasmbin.Parse
	if l.SurfaceOnly {
		read = wasmbin.Surface
	}
	m, err := read(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", where, ErrModule, err)
	}
	return m, nil
}

func readModule(root *os.Root, name string) ([]byte, error) {
	b, err := read(root, name, maxModule)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return b, nil
}

// read returns the bytes of a regular file below root, at most so many.
func read(root *os.Root, name string, most int64) ([]byte, error) {
	b, err := regular.Read(root, name, most)
	if err != nil {
		return nil, pathless(err)
	}
	return b, nil
}

// pathless drops the operation and the path from an error, which the message
// around it has already.
func pathless(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
