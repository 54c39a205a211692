package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
	"github.com/sandboxd/sandboxd/capabilities/volume/stored"
	"github.com/sandboxd/sandboxd/internal/config"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/tool"
)

// storeOpener opens the store of the state folder.
type storeOpener func(context.Context, *app) (store.Store, error)

type volumeCmd struct {
	Ls     volumeLsCmd     `cmd:"" help:"List managed volumes, or what is in one."`
	Cat    volumeCatCmd    `cmd:"" help:"Print a file of a managed volume."`
	Import volumeImportCmd `cmd:"" help:"Fill a managed volume from a folder."`
	Export volumeExportCmd `cmd:"" help:"Write a managed volume into an empty folder."`
}

// volumeName says which volume.
type volumeName struct {
	Principal string `default:"local" placeholder:"NAME" help:"Whose volume. Default: local, who everybody is where there are no principals."`
}

// space returns the space of [PACKAGE/]NAME. Without a package there has to
// be one volume of that name; with one, the volume need not be there when it is
// to be filled.
func (v volumeName) space(ctx context.Context, s store.Store, ref string, fill bool) (store.Space, error) {
	all, err := stored.Volumes(ctx, s)
	if err != nil {
		return store.Space{}, err
	}
	pkg, name, qualified := strings.Cut(ref, "/")
	if !qualified {
		pkg, name = "", ref
	}
	var found []store.Space
	for _, sp := range all {
		if n, _ := stored.VolumeOf(sp); sp.Principal == v.Principal && n == name && (!qualified || sp.Package == pkg) {
			found = append(found, sp)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return store.Space{}, fmt.Errorf("volume %s: several packages have one; name it as PACKAGE/%s", term.Line(ref), term.Line(name))
	case fill && qualified && tool.ValidPackageName(pkg) && tool.ValidPackageName(name):
		return stored.SpaceOf(v.Principal, pkg, name), nil
	case fill:
		return store.Space{}, fmt.Errorf("volume %s: not found; name a new one as PACKAGE/NAME", term.Line(ref))
	}
	return store.Space{}, fmt.Errorf("volume %s: not found for %s; `sandboxd volume ls` lists all", term.Line(ref), term.Line(v.Principal))
}

// tree returns the volume as it is now.
func (v volumeName) tree(ctx context.Context, s store.Store, ref string) (*stored.Tree, error) {
	space, err := v.space(ctx, s, ref, false)
	if err != nil {
		return nil, err
	}
	return stored.New(ctx, stored.Options{Reader: s.Snapshot, Blobs: s, Space: space}), nil
}

// volumePath returns a path below the root of what the user wrote as one.
func volumePath(s string) (string, error) {
	p := strings.TrimPrefix(path.Clean("/"+s), "/")
	if p == "" {
		p = "."
	}
	if !volume.ValidPath(p) {
		return "", fmt.Errorf("%s: not a path of a volume", term.Line(s))
	}
	return p, nil
}

// withStore does something with the store, and closes it.
func (a *app) withStore(open storeOpener, do func(store.Store) error) error {
	s, err := open(a.ctx, a)
	if err != nil {
		return err
	}
	err = do(s)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

// inVolume says in words what is wrong with a path.
func inVolume(p string, err error) error {
	switch {
	case errors.Is(err, capabilities.ENOENT), errors.Is(err, capabilities.ENOTDIR):
		return fmt.Errorf("%s: not in the volume", term.Line(p))
	case errors.Is(err, capabilities.EISDIR):
		return fmt.Errorf("%s: a folder; `sandboxd volume ls` lists what is in it", term.Line(p))
	}
	return fmt.Errorf("%s: %w", term.Line(p), err)
}

type volumeLsCmd struct {
	volumeName
	Volume    string `arg:"" optional:"" placeholder:"[PACKAGE/]NAME" help:"The volume. Default: list all volumes."`
	Path      string `arg:"" optional:"" help:"A path in it. Default: its root."`
	Recursive bool   `short:"r" help:"What is in folders too."`
	JSON      bool   `name:"json" help:"A JSON object a line."`
}

func (volumeLsCmd) Help() string {
	return `Examples:

    sandboxd volume ls
    sandboxd volume ls notes/data
    sandboxd volume ls notes/data drafts --recursive`
}

// Run lists volumes, or what is in one.
func (c *volumeLsCmd) Run(a *app, open storeOpener) error {
	return a.withStore(open, func(s store.Store) error {
		if c.Volume == "" {
			return c.volumes(a, s)
		}
		return c.files(a, s)
	})
}

// volumeLine is a volume as --json prints it.
type volumeLine struct {
	Principal string `json:"principal"`
	Package   string `json:"package"`
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"` // about
}

func (c *volumeLsCmd) volumes(a *app, s store.Store) error {
	all, err := stored.Volumes(a.ctx, s)
	if err != nil {
		return err
	}
	for _, sp := range all {
		usage, err := s.Usage(a.ctx, sp)
		if err != nil {
			return err
		}
		name, _ := stored.VolumeOf(sp)
		ref := strings.TrimPrefix(sp.Package+"/"+name, "/")
		line := fmt.Sprintf("%-12s  %-30s  %d bytes", term.Line(sp.Principal), term.Line(ref), usage.Bytes)
		if err := a.line(c.JSON, volumeLine{sp.Principal, sp.Package, name, usage.Bytes}, line); err != nil {
			return err
		}
	}
	if len(all) == 0 && !c.JSON {
		fmt.Fprintln(a.stderr, "no managed volumes yet; one is made when a tool first writes to it")
	}
	return nil
}

// fileLine is a path as --json prints it.
type fileLine struct {
	Path    string    `json:"path"`
	Kind    string    `json:"kind"` // file or directory
	Mode    string    `json:"mode"` // octal
	Size    int64     `json:"size"` // bytes
	ModTime time.Time `json:"modTime"`
}

func (c *volumeLsCmd) files(a *app, s store.Store) error {
	p, err := volumePath(c.Path)
	if err != nil {
		return err
	}
	tree, err := c.tree(a.ctx, s, c.Volume)
	if err != nil {
		return err
	}
	list, err := stored.List(a.ctx, tree, p, c.Recursive)
	if err != nil {
		return inVolume(p, err)
	}
	for _, f := range list {
		l := fileLine{f.Path, "file", fmt.Sprintf("%04o", f.Mode), f.Size, f.ModTime}
		mark, mode := "", f.Mode
		if f.Kind == volume.Dir {
			l.Kind, mark, mode = "directory", "/", f.Mode|os.ModeDir
		}
		line := fmt.Sprintf("%v %12d  %s  %s%s", mode, f.Size, f.ModTime.Local().Format("2006-01-02 15:04:05"), term.Line(f.Path), mark)
		if err := a.line(c.JSON, l, line); err != nil {
			return err
		}
	}
	return nil
}

// line prints a value as JSON, or the text for it.
func (a *app) line(asJSON bool, v any, text string) error {
	if asJSON {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		text = string(term.JSON(b))
	}
	_, err := fmt.Fprintln(a.stdout, text)
	return err
}

type volumeCatCmd struct {
	volumeName
	Volume string `arg:"" placeholder:"[PACKAGE/]NAME" help:"The volume."`
	Path   string `arg:"" help:"The file."`
}

func (volumeCatCmd) Help() string {
	return `On a terminal, characters that could mislead it are shown as escapes.

Examples:

    sandboxd volume cat notes/data notes.json
    sandboxd volume cat notes/data photo.png > photo.png`
}

// Run prints a file.
func (c *volumeCatCmd) Run(a *app, open storeOpener) error {
	p, err := volumePath(c.Path)
	if err != nil {
		return err
	}
	return a.withStore(open, func(s store.Store) error {
		tree, err := c.tree(a.ctx, s, c.Volume)
		if err != nil {
			return err
		}
		read := func(w io.Writer) error {
			if err := stored.Read(a.ctx, tree, p, w); err != nil {
				return inVolume(p, err)
			}
			return nil
		}
		if isTerminal(a.stdout) {
			return escaped(a.stdout, read)
		}
		return read(a.stdout)
	})
}

// escaped shows on a terminal what is written, a line or a part of one at a time.
func escaped(w io.Writer, write func(io.Writer) error) error {
	r, pipe := io.Pipe()
	defer r.Close()
	go func() { pipe.CloseWithError(write(pipe)) }()
	in := bufio.NewReaderSize(r, maxShown)
	var rest []byte
	for {
		part, err := in.ReadSlice('\n')
		part = append(rest, part...)
		rest = nil
		if errors.Is(err, bufio.ErrBufferFull) {
			n := wholeRunes(part)
			part, rest, err = part[:n:n], part[n:], nil
		}
		if _, werr := io.WriteString(w, term.Text(string(part))); werr != nil {
			return werr
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// maxShown is how long a part of a line is that is shown at once, in bytes.
const maxShown = 64 << 10

// wholeRunes returns the length of b without a character that is cut off.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

type volumeImportCmd struct {
	volumeName
	Volume  string `arg:"" placeholder:"[PACKAGE/]NAME" help:"The volume. It need not be there."`
	Folder  string `arg:"" help:"The folder."`
	Replace bool   `help:"Remove what is in the volume."`
}

func (volumeImportCmd) Help() string {
	return `Takes all files and folders, with their modes and times, or nothing. A managed volume has no links: a folder with
symbolic links is refused.

Examples:

    sandboxd volume import notes/data ./my-notes
    sandboxd volume import notes/data ./my-notes --replace`
}

// Run fills a volume.
func (c *volumeImportCmd) Run(a *app, open storeOpener) error {
	root, err := os.OpenRoot(c.Folder)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer root.Close()
	if !validPrincipal(c.Principal) {
		return fmt.Errorf("--principal %s: not a name for a principal", term.Line(c.Principal))
	}
	return a.withStore(open, func(s store.Store) error {
		space, err := c.space(a.ctx, s, c.Volume, true)
		if err != nil {
			return err
		}
		got, err := stored.Import(a.ctx, s, space, root.FS(), stored.ImportOptions{Replace: c.Replace})
		switch {
		case errors.Is(err, stored.ErrNotEmpty):
			return fmt.Errorf("volume %s: %w; --replace removes what is in it", term.Line(c.Volume), stored.ErrNotEmpty)
		case err != nil:
			return err
		}
		name, _ := stored.VolumeOf(space)
		_, err = fmt.Fprintf(a.stdout, "volume %s: %d files, %d folders, %d bytes imported\n",
			strings.TrimPrefix(space.Package+"/"+name, "/"), got.Files, got.Dirs, got.Bytes)
		return err
	})
}

func validPrincipal(s string) bool { return s == config.Local || tool.ValidPackageName(s) }

type volumeExportCmd struct {
	volumeName
	Volume string `arg:"" placeholder:"[PACKAGE/]NAME" help:"The volume."`
	Folder string `arg:"" help:"The folder, which is made when it is missing."`
}

func (volumeExportCmd) Help() string {
	return `Examples:

    sandboxd volume export notes/data ./backup`
}

// Run writes a volume into a folder.
func (c *volumeExportCmd) Run(a *app, open storeOpener) error {
	dir, err := filepath.Abs(c.Folder)
	if err != nil {
		return err
	}
	return a.withStore(open, func(s store.Store) error {
		tree, err := c.tree(a.ctx, s, c.Volume)
		if err != nil {
			return err
		}
		err = stored.Export(a.ctx, tree, dir)
		if errors.Is(err, stored.ErrNotEmpty) {
			return fmt.Errorf("%s: %w; name an empty folder", term.Line(c.Folder), stored.ErrNotEmpty)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "volume %s: exported to %s\n", term.Line(c.Volume), term.Line(dir))
		return err
	})
}
