package undo

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// format is the version of the encoding. A change that an older reader would
// misread is a new version.
const format = 1

// encoded is how a record is written.
type encoded struct {
	Format int `json:"format"`
	*Record
}

// Encode returns the record as JSON. [ErrInvalid] for a record that Decode would
// refuse.
func (r *Record) Encode() ([]byte, error) {
	if err := r.valid(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(encoded{format, r})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return b, nil
}

// Decode reads what Encode wrote: that, byte by byte, and nothing else. Any error
// is [ErrInvalid].
func Decode(b []byte) (*Record, error) {
	e := encoded{Record: &Record{}}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if e.Format != format || e.Record == nil {
		return nil, fmt.Errorf("%w: format %d, want %d", ErrInvalid, e.Format, format)
	}
	// Names in other case, names that come twice and spaces are read, and would
	// make two texts of one record.
	again, err := e.Encode()
	switch {
	case err != nil:
		return nil, err
	case !bytes.Equal(again, b):
		return nil, fmt.Errorf("%w: not as it is written", ErrInvalid)
	}
	return e.Record, nil
}
