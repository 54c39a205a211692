package stored

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// Errors of [Import] and [Export].
var (
	// ErrNotEmpty: there are files where none are expected.
	ErrNotEmpty = errors.New("not empty")
	// ErrLink: a symbolic link, which a managed volume does not hold.
	ErrLink = errors.New("symbolic link: a managed volume holds files and directories only")
	// ErrSpecial: a device, pipe or socket.
	ErrSpecial = errors.New("special file: a managed volume holds files and directories only")
	// ErrName: a name that no guest could be shown.
	ErrName = errors.New("name that a volume cannot have")
)

// importInline is how many bytes of small files an import keeps in memory, for
// it is one commit. The rest are kept as pieces.
const importInline = 16 << 20

// ImportOptions say what an import may do. The zero value fills an empty volume.
type ImportOptions struct {
	// Replace makes the volume hold what is imported and nothing else. Without it
	// the volume has to be empty.
	Replace bool
	Records []store.Record // for the journal, in the same commit
}

// Imported counts what an import has brought.
type Imported struct {
	Files, Dirs int
	Bytes       int64
}

// Import puts the tree of src into a volume, in one commit: modes, times and
// contents. It returns [ErrNotEmpty]; [ErrLink], [ErrSpecial] and [ErrName] with
// the path, when nothing was changed; and [store.ErrConflict] when somebody
// changes the volume meanwhile.
func Import(ctx context.Context, s store.Store, space store.Space, src fs.FS, o ImportOptions) (Imported, error) {
	snapshot, err := s.Snapshot(ctx)
	if err != nil {
		return Imported{}, fmt.Errorf("import: %w", err)
	}
	i := importer{
		src: src, tree: New(ctx, Options{Reader: At(snapshot), Blobs: s, Space: space}),
		blobs: newPutter(ctx, s), commit: &store.Commit{ID: "import-" + rand.Text(), Time: time.Now(), Records: o.Records},
	}
	if err := i.replace(ctx, snapshot, o.Replace); err != nil {
		return Imported{}, fmt.Errorf("import: %w", err)
	}
	err = fs.WalkDir(src, ".", i.visit)
	if lost := i.blobs.wait(); lost != nil {
		err = lost
	}
	if err != nil {
		return Imported{}, fmt.Errorf("import: %w", err)
	}
	i.addWrites()
	if _, err := s.Commit(ctx, i.commit); err != nil {
		return Imported{}, fmt.Errorf("import: %w", err)
	}
	return i.count, nil
}

// importer turns a tree into a commit.
type importer struct {
	src    fs.FS
	tree   *Tree
	blobs  *putter
	commit *store.Commit
	piece  []byte                 // room for the next one
	inline int                    // bytes of small files held
	gone   map[string]struct{}    // keys of what was there
	writes map[string]store.Write // by the name of the key
	count  Imported
}

// replace demands that the volume is as it is now, and ends all of its keys.
func (i *importer) replace(ctx context.Context, s store.Snapshot, whole bool) error {
	i.gone, i.writes = map[string]struct{}{}, map[string]store.Write{}
	r := store.Range{Space: i.tree.options.Space}
	if !whole {
		r = store.Prefix(r.Space, prefixOf("."))
	}
	digest := store.NewRangeDigest(false)
	for from := r; ; {
		page, err := s.Scan(ctx, from, pageSize)
		if err != nil {
			return err
		}
		if !whole && len(page) > 0 {
			return fmt.Errorf("volume: %w", ErrNotEmpty)
		}
		for _, e := range page {
			digest.Add(e.Name, e.Version, e.Class)
			i.gone[e.Name] = struct{}{}
		}
		if len(page) < pageSize {
			break
		}
		from.From = page[len(page)-1].Name + nul
	}
	i.commit.Ranges = []store.RangeGuard{{Range: r, Digest: digest.Sum()}}
	return nil
}

func (i *importer) visit(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch {
	case !volume.ValidPath(name):
		err = ErrName
	case d.Type()&fs.ModeSymlink != 0:
		err = ErrLink
	case d.IsDir():
		err = i.dir(name, d)
	case d.Type().IsRegular():
		err = i.file(name)
	default:
		err = ErrSpecial
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (i *importer) dir(name string, d fs.DirEntry) error {
	fi, err := d.Info()
	if err != nil {
		return err
	}
	i.write(store.Write{Key: i.tree.key(timeName(name)), Value: encodeTime(kept(fi.ModTime()))})
	if name != "." {
		i.count.Dirs++
		i.entry(name, entry{kind: volume.Dir, mode: fi.Mode().Perm()})
	}
	return nil
}

// kept returns a time as it can be kept.
func kept(t time.Time) time.Time {
	switch {
	case t.Before(minTime):
		return minTime
	case t.After(maxTime):
		return maxTime
	}
	return t
}

func (i *importer) file(name string) error {
	f, err := i.src.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return ErrSpecial // it was replaced since it was listed
	}
	e := entry{kind: volume.File, mode: fi.Mode().Perm(), time: kept(fi.ModTime())}
	c, err := i.read(f, &e.size)
	if err != nil {
		return err
	}
	i.count.Files++
	i.count.Bytes += e.size
	i.entry(name, e)
	i.blobs.then(func() {
		i.write(store.Write{Key: i.tree.key(contentName(name)), Value: c.encode(), Blobs: c.blobs()})
	})
	return nil
}

// read reads a file to its end, piece by piece.
func (i *importer) read(r io.Reader, size *int64) (*content, error) {
	c := &content{}
	var digests []*store.Digest
	for {
		if err := i.blobs.ctx.Err(); err != nil {
			return nil, context.Cause(i.blobs.ctx)
		}
		if i.piece == nil {
			i.piece = make([]byte, chunkSize)
		}
		n, err := io.ReadFull(r, i.piece)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return nil, err
		}
		if *size += int64(n); *size > maxSize {
			return nil, store.ErrTooLarge
		}
		small := end && len(digests) == 0 && n <= maxInline
		if small && (n == 0 || i.inline+n <= importInline) {
			i.inline += n
			c.inline = bytes.Clone(i.piece[:n])
			return c, nil
		}
		if n > 0 {
			d := new(store.Digest)
			digests = append(digests, d)
			i.blobs.put(i.piece[:n], d)
			i.piece = nil
		}
		if end {
			break
		}
	}
	i.blobs.then(func() {
		c.chunks = make([]store.Digest, len(digests))
		for k, d := range digests {
			c.chunks[k] = *d
		}
	})
	return c, nil
}

func (i *importer) entry(name string, e entry) {
	i.write(store.Write{Key: i.tree.key(entryName(name)), Value: e.encode(), Class: classOf(e.kind)})
}

func (i *importer) write(w store.Write) {
	delete(i.gone, w.Name)
	i.writes[w.Name] = w
}

// addWrites puts all keys into the commit.
func (i *importer) addWrites() {
	for name := range i.gone {
		i.writes[name] = store.Write{Key: i.tree.key(name), Delete: true}
	}
	for _, name := range slices.Sorted(maps.Keys(i.writes)) {
		i.commit.Writes = append(i.commit.Writes, i.writes[name])
	}
}
