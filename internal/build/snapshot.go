package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sandboxd/sandboxd/internal/regular"
	"github.com/sandboxd/sandboxd/tool"
)

// snapshot is a private copy of what a build of a source can reach: the packages
// of its module that it imports, those of modules that lie beside it, and what
// is vendored. Whoever writes the source cannot change it any more, and the go
// command never sees anything else.
type snapshot struct {
	temp     string // the private folder
	root     string // of the source's module, in temp
	dir      string // of the source, in temp; the go command runs there
	modules  []module
	vendored bool
	// outside is the first module that is imported, or seems to be, and that lies
	// where the source must not reach.
	outside error

	names  []string // pairs of a private path and the author's, for messages
	copied map[string]bool
	queue  []string // import paths
	files  int
	bytes  int64
}

// module is a module of which packages are copied.
type module struct {
	path    string // of the packages in it
	from    *os.Root
	to      string // in the private folder
	outside error  // why its packages are refused
}

const (
	goModName   = "go.mod"
	goSumName   = "go.sum"
	vendorNames = "vendor/modules.txt"
)

// origin is where a source lies, with links resolved.
type origin struct {
	pkg  string // the package's folder
	dir  string // the source's, the same or below
	root string // that of its go.mod, the same or above or below pkg
}

// locate finds a source and its module.
func locate(pkg string, s tool.Source) (o origin, err error) {
	shown, sub := filepath.Join(pkg, s.Dir), filepath.FromSlash(s.Dir)
	if !filepath.IsLocal(sub) {
		return o, fmt.Errorf("%w: folder %s is outside of the package", ErrSource, shown)
	}
	if pkg, err = filepath.Abs(pkg); err == nil {
		o.pkg, err = filepath.EvalSymlinks(pkg)
	}
	if err != nil {
		return o, fmt.Errorf("source folder %s: not found", shown)
	}
	o.dir = filepath.Join(o.pkg, sub)
	if err := checkTree(o.dir, shown); err != nil {
		return o, err
	}
	for o.root = o.dir; ; o.root = filepath.Dir(o.root) {
		if info, err := os.Lstat(filepath.Join(o.root, goModName)); err == nil && !info.IsDir() {
			return o, nil
		}
		if o.root == filepath.Dir(o.root) {
			return o, fmt.Errorf("source of %s: no go.mod there or above; run in it: go mod init example.com/NAME", shown)
		}
	}
}

// open opens the folder of the module. Below the package's folder, which is its
// author's, no link is followed.
func (o origin) open() (*os.Root, error) {
	below, err := filepath.Rel(o.pkg, o.root)
	if err != nil || !filepath.IsLocal(below) {
		return regular.Folder(o.root)
	}
	pkg, err := regular.Folder(o.pkg)
	if err != nil {
		return nil, err
	}
	defer pkg.Close()
	return regular.Subfolder(pkg, below)
}

// take copies a source into temp, which is private. Files are read once: what
// was read is what is checked, hashed and built.
func take(ctx context.Context, g *goTool, temp string, o origin) (*snapshot, error) {
	s := &snapshot{temp: temp, root: filepath.Join(temp, "module"), copied: map[string]bool{}}
	rel, err := filepath.Rel(o.root, o.dir)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	s.dir = filepath.Join(s.root, rel)
	s.rename(s.root, o.root)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("copy of the source: %w", err)
	}
	base, err := o.open()
	if err != nil {
		return nil, refused(o.root, err)
	}
	defer s.close()
	s.modules = []module{{from: base, to: s.root}}
	if err := s.takeModule(ctx, g, o); err != nil {
		return nil, err
	}
	g.dir, g.names = s.dir, strings.NewReplacer(s.names...)
	if err := s.copyPackage(s.modules[0], rel); err != nil {
		return nil, err
	}
	for len(s.queue) > 0 {
		path := s.queue[0]
		s.queue = s.queue[1:]
		if err := s.copyImport(path); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *snapshot) close() {
	for _, m := range s.modules {
		if m.from != nil {
			m.from.Close()
		}
	}
}

// rename has messages say the author's path for a private one.
func (s *snapshot) rename(private, author string) {
	// The go command shows paths as they are from its folder where that is shorter.
	if rel, err := filepath.Rel(s.dir, private); err == nil && !filepath.IsLocal(rel) && private != s.root {
		s.names = append(s.names, rel, author)
	}
	if rel, err := filepath.Rel(s.root, private); err == nil && private != s.root {
		s.names = append(s.names, rel, author)
	}
	s.names = append(s.names, private, author)
}

// takeModule copies the files of the module itself, and finds the modules that
// its go.mod puts in folders.
func (s *snapshot) takeModule(ctx context.Context, g *goTool, o origin) error {
	main := s.modules[0]
	if err := s.copyFile(main, goModName, o.root); err != nil {
		return err
	}
	for _, name := range []string{goSumName, filepath.FromSlash(vendorNames)} {
		err := s.copyFile(main, name, o.root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.vendored = s.vendored || err == nil && name != goSumName
	}
	g.dir, g.names = s.root, strings.NewReplacer(s.names...)
	mod, err := g.goMod(ctx)
	if err != nil {
		return err
	}
	s.modules[0].path = mod.Module.Path
	if s.vendored { // then go.mod's folders are not read
		return nil
	}
	edits := []string{"mod", "edit"}
	for i, r := range mod.Replace {
		if r.New.Version != "" {
			continue
		}
		m, err := s.replaced(r, i, o)
		if err != nil {
			return err
		}
		s.modules = append(s.modules, m)
		to, err := filepath.Rel(s.root, m.to)
		if err != nil {
			return fmt.Errorf("copy of the source: %w", err)
		}
		if filepath.IsLocal(to) {
			to = "./" + to
		}
		if to = filepath.ToSlash(to); to != r.New.Path {
			edits = append(edits, "-replace="+r.Old.String()+"="+to)
		}
	}
	if len(edits) > 2 {
		_, err = g.run(ctx, edits...)
	}
	return err
}

// modFile is what `go mod edit -json` says.
type modFile struct {
	Module  struct{ Path string }
	Replace []replacement
}

type replacement struct{ Old, New modVersion }

type modVersion struct{ Path, Version string }

func (v modVersion) String() string {
	if v.Version == "" {
		return v.Path
	}
	return v.Path + "@" + v.Version
}

func (g *goTool) goMod(ctx context.Context) (f modFile, err error) {
	out, err := g.run(ctx, "mod", "edit", "-json")
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, fmt.Errorf("go.mod of %s: %w", g.source, err)
	}
	return f, nil
}

// replaced returns the i-th module that go.mod replaces by a folder. One in the
// source's own module keeps its place. The project's own may lie anywhere. Others
// get an empty module in their place, so that nothing of them is read.
func (s *snapshot) replaced(r replacement, i int, o origin) (module, error) {
	author := filepath.FromSlash(r.New.Path)
	if !filepath.IsAbs(author) {
		author = filepath.Join(o.root, author)
	}
	if real, err := filepath.EvalSymlinks(author); err == nil {
		author = real
	}
	if rel, err := filepath.Rel(o.root, author); err == nil && filepath.IsLocal(rel) {
		m := module{path: r.Old.Path, to: filepath.Join(s.root, rel)}
		return m, s.enter(&m, s.modules[0].from, rel, author)
	}
	m := module{path: r.Old.Path, to: filepath.Join(s.temp, fmt.Sprintf("replaced-%d", i))}
	if err := os.Mkdir(m.to, 0o700); err != nil {
		return m, fmt.Errorf("copy of the source: %w", err)
	}
	s.rename(m.to, author)
	if r.Old.Path != sdkModule {
		m.outside = fmt.Errorf("%w: go.mod replaces %s by %s, outside of its own module; vendor it", ErrSource, r.Old.Path, r.New.Path)
		return m, os.WriteFile(filepath.Join(m.to, goModName), []byte("module "+r.Old.Path+"\n"), 0o600)
	}
	clone, err := regular.Folder(author)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil // the go command says so
	}
	if err != nil {
		return m, fmt.Errorf("source: %w", err)
	}
	defer clone.Close()
	return m, s.enterSDK(&m, clone, author)
}

// enter opens a module in a folder below root and copies its go.mod.
func (s *snapshot) enter(m *module, root *os.Root, name, author string) (err error) {
	if m.from, err = regular.Subfolder(root, name); errors.Is(err, fs.ErrNotExist) {
		return nil // the go command says so
	}
	if err != nil {
		return refused(author, err)
	}
	if err = s.copyFile(*m, goModName, author); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		m.from.Close()
	}
	return err
}

var sdkLine = regexp.MustCompile(`(?m)^module[ \t]+"?` + regexp.QuoteMeta(sdkModule) + `"?[ \t\r]*(//.*)?$`)

// enterSDK is enter for a clone of this project, which no other folder passes as.
func (s *snapshot) enterSDK(m *module, clone *os.Root, author string) error {
	if err := s.enter(m, clone, ".", author); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(m.to, goModName))
	if errors.Is(err, fs.ErrNotExist) || err == nil && sdkLine.Match(text) {
		return nil
	}
	m.from.Close()
	return errors.Join(err, fmt.Errorf("%w: go.mod replaces %s by %s, which is another module; name a clone of it", ErrSource, sdkModule, author))
}
