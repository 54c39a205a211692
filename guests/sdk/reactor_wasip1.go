//go:build wasip1

package sdk

import "reflect"

// The host and the guest pass one request and one answer at a time. These two
// keep the memory that the host holds an address of from being collected.
var (
	requests [][]byte
	reply    []byte
)

// alloc returns the address of n bytes that the host may write a request to.
// They are kept until the call that follows returns.
//
//go:wasmexport sandboxd_alloc
func alloc(n int32) *byte {
	if n <= 0 {
		n = 1
	}
	b := make([]byte, n)
	requests = append(requests, b)
	return &b[0]
}

// call answers the request and returns where the answer is.
//
//go:wasmexport sandboxd_call
func call(req string) uint64 {
	out := hand(Run([]byte(req)))
	requests = nil
	return out
}

//go:wasmexport sandboxd_describe
func describe() uint64 { return hand(Describe()) }

// hand keeps b until the next answer and returns its address and length, as
// (address << 32 | length). The address is taken with reflect, which spares
// the package unsafe.
func hand(b []byte) uint64 {
	reply = b
	return uint64(reflect.ValueOf(b).Pointer())<<32 | uint64(len(b))
}
