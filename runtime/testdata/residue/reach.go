package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"structs"

	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

type fdstat struct {
	_        structs.HostLayout
	filetype uint8
	_        [23]uint8
}

type prestat struct {
	_      structs.HostLayout
	kind   uint8
	length uint32
}

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_get
func fdFdstatGet(fd int32, buf *fdstat) uint32

//go:wasmimport wasi_snapshot_preview1 fd_prestat_get
func fdPrestatGet(fd int32, buf *prestat) uint32

//go:wasmimport wasi_snapshot_preview1 fd_renumber
func fdRenumber(from, to int32) uint32

// Types of files (docs of preview 1).
const (
	directory   = 3
	regularFile = 4
)

// reach looks at what a guest reaches besides its memory as it is.
func reach(p *places, w *words) {
	for fd := range int32(1101) {
		var stat fdstat
		var pre prestat
		switch {
		case fdFdstatGet(fd, &stat) != 0:
		case fd < 3 && (stat.filetype == directory || stat.filetype == regularFile), fd >= 3 && fdPrestatGet(fd, &pre) != 0:
			p.found("descriptor", uint64(fd))
		}
	}
	if b, err := io.ReadAll(os.Stdin); err == nil {
		w.look(p, "standard input", b)
	}
	tree("/tmp", func(path string) { p.found("scratch", 0) })
	tree("/data", func(path string) {
		if b, err := os.ReadFile(path); err == nil {
			w.look(p, "volume", b)
		}
	})
	if entries, err := kv.Scan("", "", 1000); err == nil {
		for _, e := range entries {
			w.look(p, "keys", append([]byte(e.Key), e.Value...))
		}
	}
	w.look(p, "environment", []byte(strings.Join(os.Environ(), " ")))
	w.look(p, "arguments", []byte(strings.Join(os.Args, " ")))
}

// tree calls each for what is below a folder.
func tree(path string, each func(string)) {
	filepath.WalkDir(path, func(below string, d fs.DirEntry, err error) error {
		if err == nil && below != path {
			each(below)
		}
		return nil
	})
}
