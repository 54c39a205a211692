package filetools

import (
	"io/fs"
	"os"
	"strings"

	"github.com/sandboxd/sandboxd/guests/files/glob"
	"github.com/sandboxd/sandboxd/guests/sdk"
)

type listInput struct {
	Path string `json:"path"`
}

func listDirectory(_ *sdk.Call, in listInput) (content, error) {
	dir, err := validate(in.Path)
	if err != nil {
		return content{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return content{}, failed("scandir", dir, err)
	}
	var b strings.Builder
	for i, e := range entries {
		if i > 0 {
			b.WriteByte('\n')
		}
		if e.IsDir() {
			b.WriteString("[DIR] ")
		} else {
			b.WriteString("[FILE] ")
		}
		b.WriteString(e.Name())
	}
	return content{b.String()}, nil
}

type searchInput struct {
	Path            string   `json:"path"`
	Pattern         string   `json:"pattern"`
	ExcludePatterns []string `json:"excludePatterns,omitempty" default:"[]"`
}

func searchFiles(_ *sdk.Call, in searchInput) (content, error) {
	dir, err := validate(in.Path)
	if err != nil {
		return content{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return content{}, failed("scandir", dir, err)
	}
	s := search{}
	if s.pattern, err = glob.Compile(in.Pattern); err != nil {
		return content{}, err
	}
	for _, text := range in.ExcludePatterns {
		p, err := glob.Compile(text)
		if err != nil {
			return content{}, err
		}
		s.exclude = append(s.exclude, p)
	}
	s.walk(dir, "", entries)
	if len(s.found) == 0 {
		return content{"No matches found"}, nil
	}
	return content{strings.Join(s.found, "\n")}, nil
}

// search is one search below a folder.
type search struct {
	pattern *glob.Pattern
	exclude []*glob.Pattern
	found   []string
}

// walk looks at the entries of dir, whose path below the folder is rel, with a slash
// where it is not empty. What cannot be looked into is passed over, as are links that
// lead nowhere or out; links to folders are not followed.
func (s *search) walk(dir, rel string, entries []fs.DirEntry) {
	for _, e := range entries {
		name, below := dir+"/"+e.Name(), rel+e.Name()
		if e.Type()&fs.ModeSymlink != 0 {
			if _, err := validate(name); err != nil {
				continue
			}
		}
		if s.excluded(below) {
			continue
		}
		if s.pattern.Match(below) {
			s.found = append(s.found, name)
		}
		if !e.IsDir() {
			continue
		}
		if entries, err := os.ReadDir(name); err == nil {
			s.walk(name, below+"/", entries)
		}
	}
}

func (s *search) excluded(path string) bool {
	for _, p := range s.exclude {
		if p.Match(path) {
			return true
		}
	}
	return false
}
