// Keeper is a guest that uses its keys and says what it found.
package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

func main() {
	for i := range 300 {
		say("put", kv.Put(fmt.Sprintf("k%03d", i), []byte(strings.Repeat("v", i))))
	}
	say("big", kv.Put("z\x00\xff", make([]byte, kv.MaxValue)))
	v, ok, err := kv.Get("z\x00\xff")
	fmt.Println(len(v), ok, err)
	v, ok, err = kv.Get("none")
	fmt.Println(len(v), ok, err)
	v, ok, err = kv.Get("k000")
	fmt.Println(len(v), v != nil, ok, err)
	for _, limit := range []int{0, 7, 250} {
		list, err := kv.Scan("k", "", limit)
		bytes := 0
		for _, e := range list {
			bytes += len(e.Value)
		}
		fmt.Println(len(list), bytes, err)
	}
	say("delete", kv.Delete("k000"))
	say("delete", kv.Delete("k000"))
	say("append", kv.Append("log", []byte("a")))
	say("append", kv.Append("log", []byte("b")))
	list, err := kv.Scan("k299", "m", 0)
	fmt.Println(len(list), string(list[1].Key), string(list[1].Value), err)
	n, err := kv.Increment("n", 1<<40)
	fmt.Println(n, err)
	n, err = kv.Increment("n", -1)
	fmt.Println(n, err)
	_, err = kv.Increment("log", 1)
	fmt.Println(errors.Is(err, kv.ErrNotNumber))
	_, err = kv.Increment("n", -1<<63)
	fmt.Println(err)
	_, err = kv.Increment("n", -1<<63)
	fmt.Println(errors.Is(err, kv.ErrOverflow))
	fmt.Println(errors.Is(kv.Put("", nil), kv.ErrKey), errors.Is(kv.Append("z\x00\xff", []byte("x")), kv.ErrTooLarge))
}

func say(what string, err error) {
	if err != nil {
		fmt.Println(what, err)
	}
}
