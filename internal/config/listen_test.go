package config

import (
	"errors"
	"net"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckListen(t *testing.T) {
	for addr, want := range map[string]error{
		"127.0.0.1:8080": nil, "127.8.9.1:1": nil, "[::1]:0": nil, "localhost:8080": nil, "[::ffff:127.0.0.1]:80": nil,
		":8080": ErrExposed, "0.0.0.0:8080": ErrExposed, "[::]:8080": ErrExposed, "192.168.1.2:80": ErrExposed,
		"example.com:80": ErrExposed, "localhost.:80": ErrExposed, "localhost.evil.example:80": ErrExposed,
		"127.0.0.1.example.com:80": ErrExposed, "LOCALHOST:80": ErrExposed, "[fe80::1%eth0]:80": ErrExposed,
		"[::ffff:10.0.0.1]:80": ErrExposed,
		"":                     ErrAddress, "localhost": ErrAddress, "8080": ErrAddress, "::1:80": ErrAddress, "localhost:": ErrAddress,
		"localhost:http": ErrAddress, "localhost:65536": ErrAddress, "localhost:-1": ErrAddress, "localhost:080": ErrAddress,
		"a b:80": ErrAddress, "http://localhost:80": ErrAddress, "a\x1b:80": ErrAddress, "unix:/tmp/x": ErrAddress,
	} {
		if err := CheckListen(addr, false, false); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", addr, err, want)
		}
		for _, open := range [][2]bool{{true, false}, {false, true}, {true, true}} {
			if err := CheckListen(addr, open[0], open[1]); (err == nil) != !errors.Is(want, ErrAddress) {
				t.Errorf("%q %v: %v", addr, open, err)
			}
		}
	}
}

// Whatever is let through without authentication is bound to loopback.
func TestCheckListenLoopback(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		host := rapid.OneOf(
			rapid.StringMatching(`[0-9a-fx.:%\[\]]{0,20}`),
			rapid.StringMatching(`(127|0|10|0x7f)(\.[0-9]{1,4}){0,4}`),
			rapid.StringMatching(`\[(::ffff:)?[0-9a-f:.]{0,12}\]`),
			rapid.String(),
		).Draw(rt, "host")
		addr := host + ":0"
		err := CheckListen(addr, false, false)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b") {
				rt.Fatalf("not one line: %q", err)
			}
			return
		}
		at, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil || !at.IP.IsLoopback() {
			rt.Fatalf("%q leads to %v, %v", addr, at, err)
		}
	})
}
