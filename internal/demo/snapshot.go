package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// snapshot is what a folder holds: for each path below it the type, the mode,
// and a digest of the bytes or the target of a link.
type snapshot map[string]string

func takeSnapshot(root string) (snapshot, error) {
	s := snapshot{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := contentOf(path, info)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s[filepath.ToSlash(rel)] = fmt.Sprintf("%s %s", info.Mode(), content)
		return nil
	})
	return s, err
}

func contentOf(path string, info fs.FileInfo) (string, error) {
	switch {
	case info.Mode().IsRegular():
		b, err := os.ReadFile(path)
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:]), err
	case info.Mode()&fs.ModeSymlink != 0:
		return os.Readlink(path)
	}
	return "", nil
}

// diff returns what later holds otherwise, a path each, in order: with + where
// it is new, with - where it is gone, with ~ where it differs.
func (s snapshot) diff(later snapshot) []string {
	var out []string
	both := maps.Clone(s)
	maps.Copy(both, later)
	for _, p := range slices.Sorted(maps.Keys(both)) {
		before, was := s[p]
		after, is := later[p]
		switch {
		case !was:
			out = append(out, "+"+p)
		case !is:
			out = append(out, "-"+p)
		case before != after:
			out = append(out, "~"+p)
		}
	}
	return out
}
