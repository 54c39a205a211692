package outbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// Sender is who sends: the call. All but CallID go into the keys of messages.
type Sender struct {
	Principal string
	Package   string
	Tool      string
	Arguments json.RawMessage // an object
	CallID    string          // for the record
}

// Space returns the space of the sender's messages.
func (s Sender) Space() store.Space {
	return store.Space{Principal: s.Principal, Package: s.Package, Area: store.AreaOutbox}
}

// key returns the key of message n of a call, from 1. Arguments that differ in
// spaces and the order of keys only are the same.
func (s Sender) key(n int) string {
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte("message 1"), []byte(s.Principal), []byte(s.Package), []byte(s.Tool), canonical(s.Arguments),
		binary.BigEndian.AppendUint64(nil, uint64(n)),
	} {
		// A length before each part, so that no two lists of parts are written alike.
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// canonical returns JSON with sorted keys and without spaces; what is no JSON as
// it is.
func canonical(raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return b
}
