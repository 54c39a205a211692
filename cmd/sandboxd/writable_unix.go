//go:build unix

package main

import "syscall"

// writable reports whether this process may make files in a folder
// (POSIX access, W_OK).
func writable(dir string) bool { return syscall.Access(dir, 2) == nil }
