// Package soak holds a running daemon against what its clients saw: its tests
// are all that is in it.
package soak
