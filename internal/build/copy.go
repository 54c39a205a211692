package build

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sandboxd/sandboxd/internal/regular"
)

// goExtensions are those of files that the go command looks at, if only to
// refuse them (go help packages).
var goExtensions = []string{
	".go", ".s", ".S", ".sx", ".h", ".hh", ".hpp", ".hxx", ".syso",
	".c", ".cc", ".cpp", ".cxx", ".m", ".f", ".F", ".for", ".f90", ".swig", ".swigcxx",
}

// embeds finds a directive that has other files compiled in, and embedsHidden one that may
// name those that begin with a dot or an underscore, as * does.
var (
	embeds       = regexp.MustCompile(`(?m)^\s*//go:embed\s`)
	embedsHidden = regexp.MustCompile("(?m)^\\s*//go:embed\\s.*(all:|[\\s/\"`][._]|[*?\\[])")
)

// versionControl are folders that no directive can name (go doc embed).
var versionControl = []string{".git", ".hg", ".svn", ".bzr"}

// copyImport copies the package with an import path from each module that can
// have it; the go command chooses.
func (s *snapshot) copyImport(path string) error {
	for _, m := range s.modules {
		rel, ok := strings.CutPrefix(path, m.path)
		if !ok || rel != "" && rel[0] != '/' {
			continue
		}
		if m.outside != nil {
			if s.outside == nil {
				s.outside = m.outside
			}
			continue
		}
		if err := s.copyPackage(m, filepath.FromSlash("."+rel)); err != nil {
			return err
		}
	}
	if s.vendored {
		return s.copyPackage(s.modules[0], filepath.Join("vendor", filepath.FromSlash(path)))
	}
	return nil
}

// copyPackage copies the package in a folder of a module, if there is one, and
// queues what it imports.
func (s *snapshot) copyPackage(m module, rel string) error {
	to := filepath.Join(m.to, rel)
	if m.from == nil || !filepath.IsLocal(rel) || s.copied[to] {
		return nil
	}
	s.copied[to] = true
	folder, err := regular.Subfolder(m.from, rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	author := filepath.Join(m.from.Name(), rel)
	if err != nil {
		return refused(author, err)
	}
	defer folder.Close()
	p := module{from: folder, to: to}
	entries, err := s.entries(folder, author)
	if err != nil {
		return err
	}
	var embedding, hidden bool
	for _, e := range entries {
		if e.IsDir() || !looksAt(e.Name()) {
			continue
		}
		if err := s.copyFile(p, e.Name(), author); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(to, e.Name()))
		if err != nil {
			return fmt.Errorf("copy of the source: %w", err)
		}
		if filepath.Ext(e.Name()) == ".go" {
			s.queue = append(s.queue, imports(text)...)
			embedding = embedding || embeds.Match(text)
			hidden = hidden || embedsHidden.Match(text)
		} else if !includesBeside(e.Name(), text) {
			return fmt.Errorf("%w: %s includes a file that is not beside it", ErrSource, filepath.Join(author, e.Name()))
		}
	}
	if embedding {
		return s.copyTree(p, author, hidden)
	}
	return nil
}

// looksAt reports whether the go command looks at a file when it builds.
func looksAt(name string) bool {
	return name == goModName || slices.Contains(goExtensions, filepath.Ext(name)) && !strings.HasSuffix(name, "_test.go") && !skipped(name)
}

// imports returns what a Go file imports; of one with mistakes, as far as it
// goes: the go command will name them.
func imports(text []byte) []string {
	f, _ := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly)
	if f == nil {
		return nil
	}
	var paths []string
	for _, i := range f.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

var include = regexp.MustCompile(`^\s*#\s*include\s+"[\w-][\w.-]*"\s*(//.*)?$`)

// includesBeside reports whether an assembly file or a header includes nothing
// by a path: the assembler would open it wherever it is.
func includesBeside(name string, text []byte) bool {
	if !slices.Contains([]string{".s", ".h"}, filepath.Ext(name)) {
		return true
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		comment := strings.HasPrefix(line, "//") && !strings.Contains(line, "*/")
		if strings.Contains(line, "include") && !comment && !include.MatchString(line) {
			return false
		}
	}
	return true
}

// copyTree copies what is left of a folder, which a directive may have compiled
// in. It passes links and special files by, as the go command does.
func (s *snapshot) copyTree(m module, author string, hidden bool) error {
	entries, err := s.entries(m.from, author)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if skipped(name) && !hidden || slices.Contains(versionControl, name) {
			continue
		}
		if e.Type().IsRegular() {
			if err := s.copyFile(m, name, author); err != nil {
				return err
			}
		}
		if e.IsDir() {
			if err := s.copySubtree(m, name, author, hidden); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *snapshot) copySubtree(m module, name, author string, hidden bool) error {
	author = filepath.Join(author, name)
	folder, err := regular.Subfolder(m.from, name)
	if err != nil {
		return refused(author, err)
	}
	defer folder.Close()
	return s.copyTree(module{from: folder, to: filepath.Join(m.to, name)}, author, hidden)
}

// entries lists a folder.
func (s *snapshot) entries(folder *os.Root, author string) ([]fs.DirEntry, error) {
	f, err := folder.Open(".")
	if err != nil {
		return nil, refused(author, err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, refused(author, err)
	}
	return entries, nil
}

// copyFile copies a file of a module, once. author is the folder that errors
// name.
func (s *snapshot) copyFile(m module, name, author string) error {
	to := filepath.Join(m.to, name)
	if s.copied[to] {
		return nil
	}
	s.copied[to] = true
	text, _, err := regular.ReadNoLink(m.from, name, maxSourceBytes-s.bytes)
	if err != nil {
		return refused(filepath.Join(author, name), err)
	}
	s.files++
	s.bytes += int64(len(text))
	if s.files > maxSourceFiles {
		return fmt.Errorf("%w: %s: %w", ErrSource, author, errTooMuch)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("copy of the source: %w", err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		return fmt.Errorf("copy of the source: %w", err)
	}
	return nil
}

// refused names the author's path in an error about it.
func refused(path string, err error) error {
	switch {
	case errors.Is(err, regular.ErrLink), errors.Is(err, regular.ErrIrregular):
		return fmt.Errorf("%w: %s is a link or a special file; put the file itself there", ErrSource, path)
	case errors.Is(err, regular.ErrTooLarge):
		return fmt.Errorf("%w: %s: %w", ErrSource, path, errTooMuch)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("source: %s: %w", path, err)
}
