package files_test

import (
	"bytes"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/capabilities/volume"
)

// fakeBase is a tree in memory: content by path. A path that ends in a slash is
// a directory, content that begins with "->" a link, with "!" a special file.
type fakeBase map[string]string

var fixture = fakeBase{
	"./":              "",
	"file":            "old content\n",
	"optional.lock":   "",
	"dir/":            "",
	"dir/inner":       "inner\n",
	"dir/sub/":        "",
	"hollow/":         "",
	"link":            "->file",
	"dirlink":         "->dir",
	"dangling":        "->nothing",
	"loop":            "->loop",
	"out":             "->../secret",
	"dir/up":          "->../../secret",
	"dir/sidestep":    "->../dirlink/../../secret",
	"outdir":          "->..",
	"absolute":        "->/etc/passwd",
	"dir/to-out":      "->../out",
	"dir/missing-out": "->nothing/../../../secret",
	"pipe":            "!",
}

var born = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (b fakeBase) Lstat(name string) (volume.Info, volume.Stamp, error) {
	i := volume.Info{Mode: 0o644, ModTime: born, Inode: 1 + uint64(len(name))}
	if _, dir := b[name+"/"]; dir {
		i.Kind, i.Mode = volume.Dir, 0o755
		return i, volume.Stamp{Exists: true, Kind: i.Kind, Mode: i.Mode}, nil
	}
	content, ok := b[name]
	switch {
	case !ok:
		return volume.Info{}, volume.Stamp{}, capabilities.ENOENT
	case strings.HasPrefix(content, "->"):
		i.Kind, i.Size = volume.Symlink, int64(len(content)-2)
	case strings.HasPrefix(content, "!"):
		i.Kind = volume.Special
	default:
		i.Size = int64(len(content))
	}
	return i, volume.Stamp{Exists: true, Kind: i.Kind, Mode: i.Mode, Size: i.Size, ModTime: i.ModTime, Inode: i.Inode}, nil
}

func (b fakeBase) ReadDir(name string) ([]volume.Entry, error) {
	var list []volume.Entry
	for p := range b {
		p = strings.TrimSuffix(p, "/")
		if p == "." || path.Dir(p) != name {
			continue
		}
		i, _, err := b.Lstat(p)
		if err != nil {
			return nil, err
		}
		list = append(list, volume.Entry{Name: path.Base(p), Kind: i.Kind, Inode: i.Inode})
	}
	slices.SortFunc(list, func(a, b volume.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (b fakeBase) Readlink(name string) (string, error) {
	target, ok := strings.CutPrefix(b[name], "->")
	if !ok {
		return "", capabilities.EINVAL
	}
	return target, nil
}

type fakeContent struct{ *bytes.Reader }

func (fakeContent) Close() error { return nil }

func (b fakeBase) Open(name string) (volume.Content, error) {
	var _ io.ReaderAt = fakeContent{}
	return fakeContent{bytes.NewReader([]byte(b[name]))}, nil
}
