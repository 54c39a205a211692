package host

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/tool"
)

// SpecError is something that the operator gives a package and that does not fit
// it.
type SpecError struct {
	Package string
	Field   string // of the package's entry in the configuration: volumes.NAME, env.NAME
	Problem string
	Mend    string
}

// Error returns one line.
func (e *SpecError) Error() string {
	return fmt.Sprintf("package %s: %s: %s; %s", e.Package, e.Field, e.Problem, e.Mend)
}

// CheckSpec reports, as a [*SpecError], what the operator gives a package that it
// does not request, settings of tools that it does not have where its manifest
// lists them, folders that are not there, and folders at all where machines share
// the store.
func CheckSpec(src *tool.Package, spec config.Package, shared bool) error {
	fault := func(field, problem, mend string) error {
		return &SpecError{Package: Name(src, spec), Field: field, Problem: problem, Mend: mend}
	}
	requested := func(volume string) bool {
		return slices.ContainsFunc(src.Manifest.Requests.Volumes, func(r tool.VolumeRequest) bool { return r.Name == volume })
	}
	for _, given := range []map[string]string{spec.Folders, spec.Managed} {
		for _, volume := range slices.Sorted(maps.Keys(given)) {
			if !requested(volume) {
				return fault("volumes."+volume, "the package requests no such volume", "remove it")
			}
		}
	}
	for _, volume := range slices.Sorted(maps.Keys(spec.Folders)) {
		if shared {
			return fault("volumes."+volume, "folder "+spec.Folders[volume]+" is on this machine, and others that use the PostgreSQL store do not see it",
				"leave the folder out for a managed volume, and fill that with `sandboxd volume import`; or write store: sqlite")
		}
		switch info, err := os.Stat(spec.Folders[volume]); {
		case err != nil:
			return fault("volumes."+volume, "folder "+spec.Folders[volume]+": not found", "make it first")
		case !info.IsDir():
			return fault("volumes."+volume, spec.Folders[volume]+": not a folder", "name a folder")
		}
	}
	if field, problem, mend := checkOutbox(src, spec); problem != "" {
		return fault(field, problem, mend)
	}
	for _, variable := range slices.Sorted(maps.Keys(spec.Env)) {
		if !slices.Contains(src.Manifest.Requests.Env, variable) {
			return fault("env."+variable, "the package requests no such variable", "remove it")
		}
	}
	requests := src.Manifest.Relaxations.Lines()
	for i, line := range spec.Relaxations.Lines {
		if !slices.Contains(requests, line) {
			return fault(fmt.Sprintf("relaxations[%d]", i), fmt.Sprintf("the package does not request %q", line), "remove it"+orOneOf(requests))
		}
	}
	if len(src.Manifest.Tools) == 0 {
		return nil // it describes itself once it is loaded
	}
	return checkTools(src, src.Manifest.Tools, spec)
}

// checkOutbox says what is wrong with the files that messages go to.
func checkOutbox(src *tool.Package, spec config.Package) (field, problem, mend string) {
	for _, host := range slices.Sorted(maps.Keys(spec.Outbox)) {
		field, file := "outbox."+host, spec.Outbox[host].File
		if !slices.Contains(src.Manifest.Requests.Outbox, host) {
			return field, "the package requests no messages to it", "remove it"
		}
		for _, volume := range slices.Sorted(maps.Keys(spec.Folders)) {
			if rel, err := filepath.Rel(spec.Folders[volume], file); err == nil && filepath.IsLocal(rel) {
				return field, "file " + file + " is in the folder of volume " + volume + ", where tools could change it", "choose another file"
			}
		}
		if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
			return field, "file " + file + ": there is no folder " + filepath.Dir(file), "make it first"
		}
	}
	return "", "", ""
}

// checkTools reports, as a [*SpecError], settings of tools that the package does
// not have.
func checkTools(src *tool.Package, has []tool.Definition, spec config.Package) error {
	var names []string
	for _, d := range has {
		names = append(names, d.Name)
	}
	fault := func(field, name string) error {
		return &SpecError{Name(src, spec), field, fmt.Sprintf("the package has no tool %q", name), "remove it" + orOneOf(names)}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Replay)) {
		if name != "default" && !slices.Contains(names, name) {
			return fault("replay."+name, name)
		}
	}
	for i, name := range spec.CommitOnError {
		if !slices.Contains(names, name) {
			return fault(fmt.Sprintf("commitOnError[%d]", i), name)
		}
	}
	return nil
}

func orOneOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", or write one of: " + strings.Join(names, ", ")
}
