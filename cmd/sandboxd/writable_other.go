//go:build !unix

package main

// writable reports whether this process may make files in a folder. Where that
// can only be found out by trying, a call finds it out.
func writable(string) bool { return true }
