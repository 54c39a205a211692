package kv

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// StoreName returns the name that a store has for a key: each byte as the
// character of that number, in UTF-8. Keys are any bytes, and a change is kept as
// JSON, which carries no other text. The order stays; ASCII stays as it is.
func StoreName(key string) string {
	if isASCII(key) {
		return key
	}
	var b strings.Builder
	b.Grow(2 * len(key))
	for i := range len(key) {
		b.WriteRune(rune(key[i]))
	}
	return b.String()
}

// KeyOf returns the key of a [StoreName].
func KeyOf(name string) (string, error) {
	if isASCII(name) {
		return name, nil
	}
	b := make([]byte, 0, len(name))
	for _, r := range name {
		if r > 0xff {
			return "", fmt.Errorf("key %q: not as keys are stored", name)
		}
		b = append(b, byte(r))
	}
	return string(b), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// maxShown is how many bytes of a key are shown.
const maxShown = 256

// Show returns a key as effects and records name it: at most 256 bytes of
// printable UTF-8, and an ellipsis. A key that has other bytes is quoted.
func Show(key string) string {
	cut := key
	if len(cut) > maxShown {
		cut = cut[:maxShown]
		for len(cut) > maxShown-utf8.UTFMax && !utf8.ValidString(cut) && utf8.ValidString(key) {
			cut = cut[:len(cut)-1]
		}
	}
	shown := cut
	if !printable(cut) {
		quoted := strconv.Quote(cut)
		for len(quoted) > maxShown {
			cut = cut[:len(cut)/2]
			quoted = strconv.Quote(cut)
		}
		shown = quoted
	}
	if len(cut) < len(key) {
		shown += "…"
	}
	return shown
}

// printable reports whether s can be shown as it is. What looks like a quoted
// text cannot.
func printable(s string) bool {
	if strings.HasPrefix(s, `"`) || !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0
}
