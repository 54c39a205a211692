package tool

import (
	"net/netip"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// Names. Those of tools follow MCP (2025-11-25, server/tools, "Tool Names").
var (
	toolName    = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	versionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}$`)
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	labelName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
	methodName  = regexp.MustCompile(`^[A-Z]{1,20}$`)
	hostLabel   = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
)

// ValidToolName reports whether MCP allows the name for a tool: one to 128
// letters, digits, underscores, hyphens and dots of ASCII.
func ValidToolName(s string) bool { return toolName.MatchString(s) }

// ReservedToolName reports whether a name is kept for tools of the host's own:
// they begin with sandboxd_, in whatever case.
func ReservedToolName(s string) bool {
	return strings.HasPrefix(strings.ToLower(s), "sandboxd_")
}

// ValidPackageName reports whether s may name a package: one to 64 lower-case
// letters, digits and hyphens.
func ValidPackageName(s string) bool {
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= 64
}

// ValidEnvName reports whether s may name an environment variable: one to 128
// letters, digits and underscores, no digit first.
func ValidEnvName(s string) bool { return envName.MatchString(s) }

// validHost reports whether s is a host name or address, in lower case, that
// may be followed by a port.
func validHost(s string) bool {
	if len(s) > 261 {
		return false
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Zone() == "" && ap.Port() != 0
	}
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Zone() == "" && (a.Is4() && s[0] != '[' || a.Is6() && s[0] == '[' && strings.HasSuffix(s, "]"))
	}
	name, port, found := strings.Cut(s, ":")
	if found {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '0' {
			return false
		}
	}
	if name == "" || len(name) > 253 {
		return false
	}
	for l := range strings.SplitSeq(name, ".") {
		if !hostLabel.MatchString(l) {
			return false
		}
	}
	return true
}

// guestPath reports whether s is an absolute path of the guest without dots,
// doubled slashes and hidden characters.
func guestPath(s string) bool {
	return len(s) <= 1024 && path.IsAbs(s) && path.Clean(s) == s && strictyaml.HiddenIn(s) == "" &&
		!strings.ContainsAny(s, "\\\n\r\t")
}

// within reports whether p is dir or below it.
func within(dir, p string) bool {
	return dir == "/" || p == dir || strings.HasPrefix(p, dir+"/")
}

// ValidHost reports whether s is a host as requests name it, in lower case, with a
// port or without.
func ValidHost(s string) bool { return validHost(s) }
