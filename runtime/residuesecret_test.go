package runtime

import (
	"bytes"
	crand "crypto/rand"
	"encoding/hex"
	"slices"
)

// What a secret is hidden by where a guest does not leave it as it is: the guests
// have the same.
const (
	secretHidden  = 0xa5
	secretBetween = 0xee
)

// secret is what one caller's calls leave.
type secret struct {
	bytes [32]byte
	words [][]byte // any of which gives it away
}

// newSecret draws one without a byte that is 0, plain or hidden.
func newSecret() *secret {
	s := &secret{}
	for i := range s.bytes {
		for s.bytes[i] == 0 || s.bytes[i] == secretHidden {
			_, _ = crand.Read(s.bytes[i : i+1])
		}
	}
	hidden, spread := bytes.Clone(s.bytes[:]), make([]byte, 0, 64)
	for i, b := range s.bytes {
		hidden[i] ^= secretHidden
		spread = append(spread, b, secretBetween)
	}
	for _, form := range [][]byte{s.bytes[:], hidden, spread, []byte(hex.EncodeToString(s.bytes[:]))} {
		for piece := range slices.Chunk(form, 8) {
			s.words = append(s.words, piece)
		}
	}
	return s
}

// shares returns two texts of which each says nothing of the secret.
func (s *secret) shares() string {
	var pad [32]byte
	_, _ = crand.Read(pad[:])
	other := s.bytes
	for i := range other {
		other[i] ^= pad[i]
	}
	return hex.EncodeToString(pad[:]) + hex.EncodeToString(other[:])
}

// in reports whether anything gives it away.
func (s *secret) in(b []byte) bool {
	return slices.ContainsFunc(s.words, func(w []byte) bool { return bytes.Contains(b, w) })
}

// allShares returns those of all.
func allShares(list []*secret) string {
	var b []byte
	for _, s := range list {
		b = append(b, s.shares()...)
	}
	return string(b)
}
