package tool

import "testing"

func TestValidHost(t *testing.T) {
	for _, s := range []string{
		"example.com", "api.example.com", "localhost", "a_b.example", "example.com:8443", "127.0.0.1",
		"127.0.0.1:80", "[::1]", "[::1]:443", "xn--bcher-kva.example",
	} {
		if !validHost(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{
		"", "Example.com", "http://example.com", "example.com/", "example.com:", "example.com:0", "example.com:080",
		"example.com:65536", "a..b", ".a", "a.", "-a.b", "a b", "*", "*.example.com", "::1", "[127.0.0.1]", "[fe80::1%eth0]",
		"user@example.com", "bücher.example", "example.com:443:443", "[", "]", "[]", "[::1", "::1]",
	} {
		if validHost(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestGuestPath(t *testing.T) {
	for _, s := range []string{"/", "/data", "/data/a b", "/dätä"} {
		if !guestPath(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "data", "/data/", "//data", "/data/../x", "/./x", "/a\\b", "/a\nb", "/a\x00b", "/a\u202eb"} {
		if guestPath(s) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, p := range [][2]string{{"/a", "/a"}, {"/a", "/a/b"}, {"/", "/a"}, {"/", "/"}} {
		if !within(p[0], p[1]) {
			t.Errorf("%s is not within %s", p[1], p[0])
		}
	}
	for _, p := range [][2]string{{"/a", "/ab"}, {"/a/b", "/a"}, {"/a", "/"}} {
		if within(p[0], p[1]) {
			t.Errorf("%s is within %s", p[1], p[0])
		}
	}
}
