//go:build wasip1

package kv

import (
	"encoding/binary"
	"math"
)

//go:wasmimport sandboxd_kv get
func hostGet(key string, buf *byte, size uint32, need *uint32) uint32

//go:wasmimport sandboxd_kv put
func hostPut(key string, value *byte, size uint32) uint32

//go:wasmimport sandboxd_kv delete
func hostDelete(key string) uint32

//go:wasmimport sandboxd_kv append
func hostAppend(key string, data *byte, size uint32) uint32

//go:wasmimport sandboxd_kv increment
func hostIncrement(key string, by int64, result *int64) uint32

//go:wasmimport sandboxd_kv scan
func hostScan(from, to string, limit uint32, buf *byte, size uint32, result *[3]uint32) uint32

// The answers of the host that mean something here (docs/abi.md, sandboxd_kv).
const (
	success      = 0
	eACCES       = 2
	eFBIG        = 22
	eINVAL       = 28
	eNAMETOOLONG = 37
	eNOENT       = 44
	eNOSPC       = 51
	eNOTSUP      = 58
	eOVERFLOW    = 61
	eRANGE       = 68
	eROFS        = 69
)

func failure(e uint32) error {
	switch e {
	case success:
		return nil
	case eACCES:
		return ErrDenied
	case eFBIG:
		return ErrTooLarge
	case eINVAL:
		return ErrNotNumber
	case eNAMETOOLONG:
		return ErrKey
	case eNOSPC:
		return ErrFull
	case eNOTSUP:
		return ErrNoCall
	case eOVERFLOW:
		return ErrOverflow
	case eROFS:
		return ErrReadOnly
	}
	return Errno(e)
}

// at returns the address of the first byte, nil where there is none.
func at(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

// Get returns the value of a key, and whether there is one.
func Get(key string) (value []byte, ok bool, err error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	buf, need := make([]byte, 512), uint32(0)
	for {
		switch e := hostGet(key, at(buf), uint32(len(buf)), &need); e {
		case success:
			return buf[:need:need], true, nil
		case eNOENT:
			return nil, false, nil
		case eRANGE:
			buf = make([]byte, need)
		default:
			return nil, false, failure(e)
		}
	}
}

// Put gives a key a value.
func Put(key string, value []byte) error {
	if err := checkPut(key, value); err != nil {
		return err
	}
	return failure(hostPut(key, at(value), uint32(len(value))))
}

// Delete removes a key. One that is not there is no error.
func Delete(key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return failure(hostDelete(key))
}

// Append puts data behind the value of a key, which is made where there is none.
// Nothing appended changes nothing.
func Append(key string, data []byte) error {
	if err := checkPut(key, data); err != nil {
		return err
	}
	return failure(hostAppend(key, at(data), uint32(len(data))))
}

// Increment adds to the number that a key holds, in decimal digits, and returns
// the sum. A key that is not there counts as 0.
func Increment(key string, by int64) (int64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	var sum int64
	e := hostIncrement(key, by, &sum)
	return sum, failure(e)
}

// Scan returns the entries of the keys from `from` (included) to `to` (excluded;
// empty: to the last), sorted by their bytes, at most limit; a limit below 1 is
// none.
func Scan(from, to string, limit int) ([]Entry, error) {
	left := uint32(math.MaxUint32)
	if limit > 0 && uint64(limit) < math.MaxUint32 {
		left = uint32(limit)
	}
	list := []Entry{}
	buf := make([]byte, 16<<10)
	for left > 0 {
		var r [3]uint32 // entries, bytes, whether there may be more
		switch e := hostScan(from, to, left, at(buf), uint32(len(buf)), &r); e {
		case success:
		case eRANGE:
			buf = make([]byte, r[1])
			continue
		default:
			return nil, failure(e)
		}
		list = appendEntries(list, buf[:r[1]])
		if r[0] == 0 || r[2] == 0 {
			break
		}
		left -= r[0]
		from = list[len(list)-1].Key + "\x00"
	}
	return list, nil
}

// appendEntries adds the entries that the host wrote: two lengths, the key, the
// value.
func appendEntries(list []Entry, b []byte) []Entry {
	for len(b) > 0 {
		k, v := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		b = b[8:]
		list = append(list, Entry{string(b[:k]), append([]byte{}, b[k:k+v]...)})
		b = b[k+v:]
	}
	return list
}
