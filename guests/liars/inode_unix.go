//go:build unix || wasip1

package main

import (
	"io/fs"
	"syscall"
)

// inode returns the number of the file on its volume.
func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino)
	}
	return 0
}
