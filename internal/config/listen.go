package config

import (
	"errors"
	"net"
	"net/netip"
	"regexp"
	"strconv"

	"github.com/sandboxd/sandboxd/internal/term"
)

// ErrAddress is matched under errors.Is by the errors of what is no address to
// listen on, ErrExposed by those of one that others reach and nobody guards.
var (
	ErrAddress = errors.New("not an address to listen on")
	ErrExposed = errors.New("others reach it and nobody has to authenticate")
)

// CheckListen reports why the daemon may not listen on addr, host:port with a
// port in digits: an error that matches [ErrAddress] or [ErrExposed]. A loopback
// address and localhost are always fine; any other is where callers authenticate,
// or where the operator has told to do without.
func CheckListen(addr string, authenticated, told bool) error {
	problem, mend, cause := judge(addr, authenticated, told)
	if cause == nil {
		return nil
	}
	return &ListenError{Addr: addr, Problem: problem, Mend: mend, Cause: cause}
}

// ListenError is why the daemon may not listen on an address.
type ListenError struct {
	Addr, Problem, Mend string
	Cause               error // ErrAddress or ErrExposed
}

// Error returns one line: address, problem and mend.
func (e *ListenError) Error() string { return term.Line(e.Addr) + ": " + e.Problem + "; " + e.Mend }

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Cause }

// judge returns what is wrong with an address, and a nil cause where nothing is.
func judge(addr string, authenticated, told bool) (problem, mend string, cause error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ErrAddress.Error(), "write host:port, for example 127.0.0.1:8080", ErrAddress
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "the port is not a number from 0 to 65535", "write it in digits", ErrAddress
	}
	_, err = netip.ParseAddr(host)
	if err != nil && host != "" && !validHost(host) {
		return "the host is neither an IP address nor a host name", "write one before the port, for example 127.0.0.1", ErrAddress
	}
	if authenticated || told || Loopback(host) {
		return "", "", nil
	}
	return ErrExposed.Error(), "listen on 127.0.0.1, list principals, or write listen.withoutAuthentication: true", ErrExposed
}

// Loopback reports whether a host, without a port, is this machine's loopback: an
// address of it, or localhost.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// validHost reports whether s is a host name in ASCII.
func validHost(s string) bool {
	return len(s) <= 253 && hostName.MatchString(s)
}

const hostLabel = `[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?`

var hostName = regexp.MustCompile(`^` + hostLabel + `(\.` + hostLabel + `)*\.?$`)
