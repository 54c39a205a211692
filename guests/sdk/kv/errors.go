package kv

import (
	"errors"
	"fmt"
)

// The bounds of keys and values, in bytes.
const (
	MaxKey   = 1024
	MaxValue = 1 << 20
)

// The errors of keys, matched with errors.Is.
var (
	ErrKey       = errors.New("key: want 1 to 1024 bytes")
	ErrTooLarge  = errors.New("value longer than 1 MiB")
	ErrNotNumber = errors.New("value is no whole number of 64 bits")
	ErrOverflow  = errors.New("number would not fit into 64 bits")
	ErrDenied    = errors.New("keys not granted") // the package does not request them, or may not have them
	ErrReadOnly  = errors.New("keys not granted for writing")
	ErrFull      = errors.New("no room for more keys") // what the operator lets the package keep
	ErrNoCall    = errors.New("no keys outside of a call")
)

// Errno is an answer of the host that has no error of its own here, a number of
// WASI preview 1.
type Errno uint32

// Error returns the number in words.
func (e Errno) Error() string { return fmt.Sprintf("keys: error %d of the host", uint32(e)) }

// Entry is a key and its value.
type Entry struct {
	Key   string
	Value []byte
}

// checkKey refuses what no host takes.
func checkKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return ErrKey
	}
	return nil
}

func checkPut(key string, value []byte) error {
	if len(value) > MaxValue {
		return ErrTooLarge
	}
	return checkKey(key)
}
