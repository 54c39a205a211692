package image

import (
	"bytes"
	"errors"
	"math/bits"
	"os"
	"slices"
	"sync"
)

// probed returns what works here.
var probed = sync.OnceValue(func() system { return probe(linux{}) })

// probe tries every method on a memory of its own. The version of the kernel does
// not say which work: a sandbox around the process may refuse any of them.
func probe(k kernel) system {
	if bits.UintSize < 64 || os.Getpagesize() > wasmPage {
		return plain()
	}
	works := slices.DeleteFunc([]Method{MethodScan, MethodPagemap, MethodCompare, MethodCopy}, func(m Method) bool {
		return try(k, m) != nil
	})
	if len(works) == 0 {
		return plain()
	}
	return system{
		methods: works,
		image:   mappedImage(k, works),
		space: func(limit, least uint64) (space, error) {
			s, err := newMapped(k, limit, least)
			if err != nil {
				return nil, err
			}
			return s, nil
		},
	}
}

// try puts a memory back that was read, written, and written as it was.
func try(k kernel, m Method) (err error) {
	page := os.Getpagesize()
	want := make([]byte, 2*wasmPage)
	copy(want, bytes.Repeat([]byte{1}, wasmPage)) // the rest is zero
	i, err := mappedImage(k, []Method{m})(want)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	made, err := i.backing.space(3*wasmPage, m, defaultKeep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.release()) }()
	if err := made.adopt(2 * wasmPage); err != nil {
		return err
	}
	for range 2 {
		b := made.bytes(3 * wasmPage)
		if !bytes.Equal(b[:2*wasmPage], want) { // this reads every page
			return errors.New("memory image: the mapping does not hold the image")
		}
		b[0], b[2*wasmPage-1], b[3*wasmPage-page] = 7, 7, 7
		if _, err := made.reset(3 * wasmPage); err != nil {
			return err
		}
		b = made.bytes(3 * wasmPage)
		if !bytes.Equal(b[:2*wasmPage], want) || slices.Max(b[2*wasmPage:]) != 0 {
			return errors.New("memory image: a reset left what was written")
		}
	}
	return nil
}
