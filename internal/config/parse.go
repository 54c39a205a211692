package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/internal/term"
)

// Load reads and checks the configuration at path, see [Parse].
func Load(path string) (*Config, error) {
	b, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", term.Line(path), err)
	}
	return Parse(path, b)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, pathless(err)
	}
	defer f.Close()
	// Parse refuses what is longer.
	b, err := io.ReadAll(io.LimitReader(f, strictyaml.MaxDocument+1))
	return b, pathless(err)
}

// pathless drops the path from an error, which the message around it has.
func pathless(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Parse checks a configuration and fills in the defaults. file names it in
// errors, and relative paths in it are below the folder that file is in, whatever
// links lead there. Its errors are [*Error]. Keys of what is not built yet are
// refused with an error that matches [tool.ErrNotSupported].
func Parse(file string, b []byte) (*Config, error) {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", term.Line(file), err)
	}
	n, err := strictyaml.ParseYAML(file, b)
	if err != nil {
		return nil, err
	}
	d := &decoder{Decoder: strictyaml.NewDecoder(file), dir: dir, places: map[string]place{}}
	c := d.config(d.Root(n))
	if d.Failed() {
		return nil, d.Err()
	}
	return c, nil
}

// decoder reads a configuration whose relative paths are below dir.
type decoder struct {
	*strictyaml.Decoder

	dir    string
	places map[string]place
}

func (d *decoder) config(root strictyaml.Value) *Config {
	c := Default()
	o := object(root, "")
	o.NoTwins()
	if d.Failed() {
		return nil
	}
	c.Principals = d.principals(o.Field("principals"))
	d.limits(o.Field("limits"), &c.Limits)
	c.Packages = d.packages(o.Field("packages"), c.Limits.Package)
	d.listen(o.Field("listen"), &c.Listen, len(c.Principals) > 0)
	c.Store = d.store(o.Field("store"))
	d.keep(o.Field("keep"), &c.Keep)
	c.HostTools = few(o.Field("hostTools")).Texts("write a list of "+strings.Join(hostTools, ", "), isHostTool)
	d.audit(o.Field("audit"), &c.Audit)
	d.log(o.Field("log"), &c.Log)
	d.traces(o.Field("traces"), &c.Traces)
	d.process(o.Field("process"), &c.Process)
	c.WasmOpt = d.wasmOpt(o.Field("wasmOpt"))
	d.grace(o.Field("grace"), &c.Grace)
	c.file, c.places = d.File(), d.places
	return c
}
