package config

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
	"github.com/sandboxd/sandboxd/tool"
)

// Limits of a package's entry.
const (
	maxPackages = 256
	maxEntries  = 64       // volumes, variables and the like, of each
	maxValue    = 32 * kib // bytes of a variable
	maxPath     = 4096     // bytes
)

const nameMend = "write lower-case letters, digits and hyphens, up to 64"

func (d *decoder) packages(v strictyaml.Value, defaults PackageLimits) []Package {
	const mend = "write [{source: ./notes}]"
	items := v.Each(mend)
	if len(items) > maxPackages {
		v.Fail(fmt.Sprintf("more than %d packages", maxPackages), "run a second daemon with a state of its own")
		return nil
	}
	var list []Package
	for _, item := range items {
		o := object(item, "packages[]")
		p := d.pack(o, defaults)
		if d.Failed() {
			return nil
		}
		d.remember(item)
		for i, other := range list {
			switch {
			case p.As != "" && p.As == other.As:
				o.Field("as").Fail(fmt.Sprintf("%q is the name of packages[%d] already", p.As, i), "choose another")
			case p.Source == other.Source && p.As == other.As:
				o.Field("source").Fail(fmt.Sprintf("is that of packages[%d] already", i), "remove one, or give one a second name with as: NAME")
			}
		}
		list = append(list, p)
	}
	return list
}

func (d *decoder) pack(o strictyaml.Value, defaults PackageLimits) Package {
	p := Package{Limits: defaults}
	p.Source = d.source(o.Required("source"))
	p.As = o.Field("as").Pattern(tool.ValidPackageName, nameMend)
	if m := o.Field("mode"); m.Present() && m.OneOf("enforce", "report") == "report" {
		p.Mode = capabilities.Report
	}
	d.volumes(o.Field("volumes"), &p)
	p.Env = d.env(o.Field("env"))
	p.OptionalWrites = few(o.Field("optionalWrites")).Texts(`write paths below a volume or names, for example [.git/index, "*.lock"]`, validPattern)
	d.enforcement(o, &p)
	packageLimits(o.Field("limits"), "packages[].limits", &p.Limits)
	if o.Node != nil {
		for _, key := range fieldsOf["packages[]"] {
			if f := o.Field(key); f.Present() {
				d.remember(f)
			}
		}
	}
	return p
}

// source returns the absolute path of a package.
func (d *decoder) source(v strictyaml.Value) string {
	const mend = "write the path of a folder or of a .wasm file, for example ./notes"
	s := v.Text(mend)
	switch {
	case strings.HasPrefix(s, "oci://"):
		v.FailCause("oci:// is not supported yet", "name a folder or a .wasm file", tool.ErrNotSupported)
	case strings.Contains(s, "://"):
		v.Fail(strictyaml.Quote(s)+" is not a path", mend)
	}
	return d.path(v, mend)
}

// path returns a path of the host, absolute and clean.
func (d *decoder) path(v strictyaml.Value, mend string) string {
	s := v.Text(mend)
	switch {
	case s == "":
		return ""
	case len(s) > maxPath:
		v.Fail(fmt.Sprintf("longer than %d bytes", maxPath), "shorten it")
	case strictyaml.HiddenIn(s) != "" || strings.ContainsAny(s, "\n\r\t"):
		v.Fail("holds hidden characters or line ends", "rename the folder")
	case s == "~" || strings.HasPrefix(s, "~/"):
		v.Fail(strictyaml.Quote(s)+" would be a folder of that name: ~ is not expanded", "write the whole path, or one from this file's folder")
	}
	s = filepath.FromSlash(s)
	if filepath.IsAbs(s) {
		return filepath.Clean(s)
	}
	return filepath.Join(d.dir, s)
}

// volumes reads what the operator gives for the volumes that a package requests.
func (d *decoder) volumes(v strictyaml.Value, p *Package) {
	for _, e := range entries(v, "write volume: {folder: PATH}") {
		const mend = "write {folder: PATH} or {managed: NAME}"
		at := v.In(e)
		if !tool.ValidPackageName(e.Key) {
			at.Fail(strictyaml.Quote(e.Key)+" is not the name of a volume", nameMend)
		}
		if !at.Is(strictyaml.Map, mend) {
			return
		}
		d.remember(at)
		o := object(at, "packages[].volumes.*")
		folder, managed := o.Field("folder"), o.Field("managed")
		switch {
		case folder.Present() && managed.Present():
			managed.Fail("is there together with folder", "keep one of them")
		case folder.Present():
			set(&p.Folders, e.Key, d.path(folder, "write the path of a folder, for example ./my-notes"))
		case managed.Present():
			set(&p.Managed, e.Key, managed.Pattern(tool.ValidPackageName, nameMend))
		default:
			at.Fail("is empty", mend)
		}
	}
}

func (d *decoder) env(v strictyaml.Value) map[string]string {
	var env map[string]string
	for _, e := range entries(v, "write NAME: value") {
		at := v.In(e)
		if !tool.ValidEnvName(e.Key) {
			at.Fail(strictyaml.Quote(e.Key)+" is not the name of a variable", "write letters, digits and underscores")
		}
		if !at.Is(strictyaml.Text, "put the value in quotes") {
			return nil
		}
		switch s := at.Node.Text; {
		case len(s) > maxValue:
			at.Fail(fmt.Sprintf("longer than %d bytes", maxValue), "give a file in a volume instead")
		case strings.Contains(s, "\x00"):
			at.Fail("holds a zero byte", "remove it")
		default:
			set(&env, e.Key, s)
		}
	}
	return env
}

// validPattern reports whether s may name optional writes, see
// [capabilities.Grant].
func validPattern(s string) bool {
	_, err := path.Match(s, "")
	return err == nil && len(s) <= maxPath && path.Clean(s) == s && s != "." && !path.IsAbs(s) &&
		!slices.Contains(strings.Split(s, "/"), "..") && strictyaml.HiddenIn(s) == "" && !strings.ContainsAny(s, "\n\r\t")
}

// entries returns the entries of a mapping with names of the user's.
func entries(v strictyaml.Value, mend string) []strictyaml.Entry {
	if !v.Is(strictyaml.Map, mend) {
		return nil
	}
	if len(v.Node.Entries) > maxEntries {
		v.Fail(fmt.Sprintf("more than %d entries", maxEntries), "remove some")
		return nil
	}
	return v.Node.Entries
}

// few refuses lists that are too long.
func few(v strictyaml.Value) strictyaml.Value {
	if v.Node != nil && len(v.Node.Items) > maxEntries {
		v.Fail(fmt.Sprintf("more than %d entries", maxEntries), "remove some")
		v.Node = nil
	}
	return v
}

func set(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}
