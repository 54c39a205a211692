package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/internal/regular"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// FilesPath is where a guest sees the files of its package.
const FilesPath = "/package"

// Limits of the files of a package, see [Manifest.Files].
const (
	maxPackageFiles = 10_000
	maxPackageBytes = 64 << 20
	maxPackageDepth = 64 // folders in one another
)

// ErrFiles is matched under errors.Is where the files of a package are not such
// that they can be given to its guest.
var ErrFiles = errors.New("files refused")

// withFiles adds what the manifest's field files names, read below root.
func (p *Package) withFiles(root *os.Root) error {
	if p.Manifest.Files == "" {
		return nil
	}
	r := &filesReader{files: map[string][]byte{}}
	folder, err := regular.Subfolder(root, filepath.FromSlash(p.Manifest.Files))
	if err == nil {
		err = r.folder(folder, ".", maxPackageDepth)
	}
	if err == nil && len(r.files) == 0 {
		err = errors.New("no file is in it")
	}
	if err != nil {
		return p.Manifest.Fault("files", strictyaml.OneLine(p.Manifest.Files)+": "+strictyaml.OneLine(pathless(err).Error()),
			"name a folder of regular files below the manifest's", errors.Join(ErrFiles, err))
	}
	p.Files = r.files
	return nil
}

// FilesFolders returns the folders in which the files of the package in a folder are,
// for a watch on them; as far as they can be told: none where there is no manifest
// that names one.
func FilesFolders(dir string) []string {
	root, err := regular.Folder(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	text, err := read(root, manifestName, strictyaml.MaxDocument)
	if err != nil {
		return nil
	}
	m, err := ParseManifest(manifestName, text)
	if err != nil || m.Files == "" {
		return nil
	}
	p := &Package{Manifest: *m}
	folders := []string{filepath.Join(dir, filepath.FromSlash(m.Files))}
	if p.withFiles(root) != nil {
		return folders
	}
	seen := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		for at := path.Dir(name); !seen[at]; at = path.Dir(at) {
			seen[at] = true
			folders = append(folders, filepath.Join(folders[0], filepath.FromSlash(at)))
		}
	}
	return folders
}

// filesReader reads a folder, each file once. Links and special files are errors.
type filesReader struct {
	files   map[string][]byte
	bytes   int64
	entries int
}

// folder reads what is in a folder, which it closes. depth is how many more may
// be in one another.
func (r *filesReader) folder(folder *os.Root, at string, depth int) error {
	defer folder.Close()
	if depth == 0 {
		return fmt.Errorf("%s: folders are more than %d deep", at, maxPackageDepth)
	}
	dir, err := folder.Open(".")
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(maxPackageFiles + 1)
	dir.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if r.entries += len(entries); r.entries > maxPackageFiles {
		return fmt.Errorf("more than %d files and folders", maxPackageFiles)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name := path.Join(at, e.Name())
		if strictyaml.HiddenIn(name) != "" || strings.ContainsAny(name, "\\\n\r\t") || len(name) > 1024 {
			return fmt.Errorf("%s: not a name that is the same on every system", name)
		}
		if e.IsDir() {
			sub, err := regular.Subfolder(folder, e.Name())
			if err == nil {
				err = r.folder(sub, name, depth-1)
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := r.file(folder, e.Name(), name); err != nil {
			return fmt.Errorf("%s: %w", name, pathless(err))
		}
	}
	return nil
}

func (r *filesReader) file(folder *os.Root, base, name string) error {
	b, _, err := regular.ReadNoLink(folder, base, maxPackageBytes-r.bytes)
	if errors.Is(err, regular.ErrTooLarge) {
		return fmt.Errorf("files are more than %d MiB together: %w", maxPackageBytes>>20, err)
	}
	if err != nil {
		return err
	}
	r.bytes += int64(len(b))
	r.files[name] = b
	return nil
}

// filesDigest returns the SHA-256 of names and contents, in the order of names;
// "" where there are none. A name has no line end, and each content is there as
// its own digest: no two trees give the same bytes.
func filesDigest(files map[string][]byte) string {
	if len(files) == 0 {
		return ""
	}
	h := sha256.New()
	h.Write([]byte("sandboxd.files/1\n"))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %s\n", sum(files[name]), name)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
