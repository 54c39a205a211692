package wasmbin

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// What [Join] fills with zeroes: between two segments at most, and in all.
const (
	maxGap  = 64
	maxFill = 4 << 20
)

// Join makes few data segments of many: those that follow each other in the
// memory, with little in between. Compilers that leave zeroes out make ten
// thousands of them, for each of which an engine keeps some bytes in every
// instance. The memory of an instance comes to the same.
//
// A module whose code could name a segment, or whose segments are not all active ones
// at addresses that it gives as numbers, is returned as it is. Errors are a [*FormatError] or a [*LimitError].
func Join(b []byte) ([]byte, error) {
	sections, err := split(b)
	if err != nil {
		return nil, err
	}
	var data section
	for _, s := range sections {
		switch s.id {
		case sectionDataCount: // without it no instruction can name a segment (5.5.16)
			return b, nil
		case sectionData:
			data = s
		}
	}
	if data.body == nil {
		return b, nil
	}
	r := &reader{b: data.body, base: data.off}
	joined := join(r)
	switch {
	case r.err != nil:
		return nil, r.err
	case joined == nil:
		return b, nil
	}
	out := make([]byte, 0, len(b)+len(joined))
	out = appendSection(append(out, b[:data.start]...), sectionData, joined)
	return append(out, b[data.off+len(data.body):]...), nil
}

// segment is an active data segment.
type segment struct {
	at   uint32
	data []byte
}

// join returns the data section with fewer segments, nil where it has to stay.
func join(r *reader) []byte {
	list := segments(r)
	if r.err != nil || list == nil {
		return nil
	}
	// None writes over another, so their order is free.
	slices.SortStableFunc(list, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	var joined []segment
	fill := 0
	for i, s := range list {
		if i == 0 {
			joined = append(joined, segment{s.at, slices.Clone(s.data)})
			continue
		}
		last := &joined[len(joined)-1]
		end := uint64(last.at) + uint64(len(last.data))
		if uint64(s.at) < end {
			return nil
		}
		gap := uint64(s.at) - end
		if gap > maxGap || fill+int(gap) > maxFill {
			joined = append(joined, segment{s.at, slices.Clone(s.data)})
			continue
		}
		fill += int(gap)
		last.data = append(append(last.data, make([]byte, gap)...), s.data...)
	}
	out := binary.AppendUvarint(nil, uint64(len(joined)))
	for _, s := range joined {
		out = appendSigned(append(out, 0, opI32Const), int64(int32(s.at)))
		out = binary.AppendUvarint(append(out, opEnd), uint64(len(s.data)))
		out = append(out, s.data...)
	}
	return out
}

// segments returns the data segments, nil where they are not all active ones at
// addresses that are numbers.
func segments(r *reader) (list []segment) {
	for range r.count("data segments", maxSegments) {
		if r.u32() != 0 || r.byte() != opI32Const {
			return nil
		}
		at := uint32(r.signed(32))
		if r.byte() != opEnd {
			return nil
		}
		list = append(list, segment{at, r.take(uint64(r.u32()))})
		if r.err != nil {
			return nil
		}
	}
	return list
}
