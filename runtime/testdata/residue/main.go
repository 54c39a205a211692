// Command residue leaves a secret wherever it can, and looks for the secrets of
// others wherever it can reach: guests/c/residue in Go. It is built for wasip1 by a
// test, as a reactor and as a command.
package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

// secretSize is in bytes.
const secretSize = 32

type secret [secretSize]byte

type arguments struct {
	Seek      string `json:"seek,omitempty"` // secrets, two shares each, in hexadecimal
	Own       string `json:"own,omitempty"`  // one secret
	Grow      bool   `json:"grow,omitempty"` // look at all memory that there can be, too
	Big       bool   `json:"big,omitempty"`  // leave much
	FillFirst bool   `json:"fillFirst,omitempty"`
	Answers   bool   `json:"answers,omitempty"` // on standard output, which is left alone then
	End       string `json:"end,omitempty"`
}

func init() {
	sdk.Register(
		sdk.Tool("trade", trade, sdk.ReadOnly(true), sdk.OpenWorld(false)),
		sdk.Tool("keep", keep, sdk.ReadOnly(false), sdk.OpenWorld(false)),
	)
}

func main() { sdk.Main() }

func trade(_ *sdk.Call, in arguments) (string, error) {
	if in.FillFirst {
		leave(in)
	}
	where := seek(in)
	if !in.FillFirst {
		leave(in)
	}
	switch in.End {
	case "trap":
		panic("trapped")
	case "exit":
		os.Exit(3)
	case "error":
		return "", errors.New(where)
	case "spin":
		for {
			spun++
		}
	}
	return where, nil
}

var spun int

func leave(in arguments) {
	if s, ok := own(in.Own); ok {
		fill(s, in)
	}
}

// own puts a secret together.
func own(shares string) (s secret, ok bool) {
	b, err := hex.DecodeString(shares)
	if err != nil || len(b) != 2*secretSize {
		return s, false
	}
	for i := range s {
		s[i] = b[i] ^ b[secretSize+i]
	}
	return s, true
}

func keep(_ *sdk.Call, in arguments) (string, error) {
	s, ok := own(in.Own)
	if !ok {
		return "", errors.New("no secret")
	}
	if err := os.WriteFile("/data/kept", s[:], 0o600); err != nil {
		return "", err
	}
	return "", kv.Put("kept", s[:])
}

// places are where something was found.
type places struct {
	text strings.Builder
	last string // the place that was named last
	more int    // how often it was
}

// mostOfOne bounds what is said of one place.
const mostOfOne = 5

func (p *places) found(where string, at uint64) {
	if where != p.last {
		p.last, p.more = where, 0
	}
	if p.more++; p.more <= mostOfOne || where == "descriptor" {
		fmt.Fprintf(&p.text, "%s %d\n", where, at)
	}
}

func seek(in arguments) string {
	p := &places{}
	w, err := newWords(in.Seek)
	if err != nil {
		return err.Error()
	}
	w.scan(p, "memory", 8, uint64(currentMemory())<<16)
	reach(p, w)
	if in.Grow {
		reachGrown(p)
	}
	return p.text.String()
}
