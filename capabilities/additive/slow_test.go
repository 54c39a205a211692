package additive

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The rules once more, slowly: whole values in memory, exact rationals, and
// every way to place elements. It shares nothing with the package.

type slowValue struct {
	kind   string // object, array, or the type of a scalar
	scalar string // strings: code points in decimal; numbers: a fraction; else the literal
	list   []*slowValue
	fields map[string]*slowValue
}

var errSlow = errors.New("not JSON")

type slowParser struct {
	b []byte
	i int
}

func slowDocument(b []byte) (*slowValue, error) {
	p := &slowParser{b: b}
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.i < len(b) {
		return nil, errSlow
	}
	return v, nil
}

func (p *slowParser) space() {
	for p.i < len(p.b) && strings.IndexByte(" \t\r\n", p.b[p.i]) >= 0 {
		p.i++
	}
}

func (p *slowParser) is(s string) bool {
	if strings.HasPrefix(string(p.b[p.i:]), s) {
		p.i += len(s)
		return true
	}
	return false
}

func (p *slowParser) value() (*slowValue, error) {
	p.space()
	for _, word := range []string{"true", "false", "null"} {
		if p.is(word) {
			kind := "boolean"
			if word == "null" {
				kind = word
			}
			return &slowValue{kind: kind, scalar: word}, nil
		}
	}
	switch {
	case p.is("["):
		return p.array()
	case p.is("{"):
		return p.object()
	case p.is(`"`):
		s, err := p.text()
		return &slowValue{kind: "string", scalar: s}, err
	}
	return p.number()
}

func (p *slowParser) array() (*slowValue, error) {
	v := &slowValue{kind: "array"}
	if p.space(); p.is("]") {
		return v, nil
	}
	for {
		e, err := p.value()
		if err != nil {
			return nil, err
		}
		v.list = append(v.list, e)
		p.space()
		if p.is("]") {
			return v, nil
		}
		if !p.is(",") {
			return nil, errSlow
		}
	}
}

func (p *slowParser) object() (*slowValue, error) {
	v := &slowValue{kind: "object", fields: map[string]*slowValue{}}
	if p.space(); p.is("}") {
		return v, nil
	}
	for {
		if p.space(); !p.is(`"`) {
			return nil, errSlow
		}
		k, err := p.text()
		if err != nil {
			return nil, err
		}
		if p.space(); !p.is(":") || v.fields[k] != nil {
			return nil, errSlow
		}
		if v.fields[k], err = p.value(); err != nil {
			return nil, err
		}
		p.space()
		if p.is("}") {
			return v, nil
		}
		if !p.is(",") {
			return nil, errSlow
		}
	}
}

// text returns code points, surrogates in pairs put together.
func (p *slowParser) text() (string, error) {
	var points []int
	for {
		r, size := utf8.DecodeRune(p.b[p.i:])
		if size == 0 || r < ' ' || r == utf8.RuneError && size == 1 {
			return "", errSlow
		}
		p.i += size
		switch {
		case r == '"':
			return fmt.Sprint(points), nil
		case r != '\\':
			points = append(points, int(r))
			continue
		case p.i == len(p.b):
			return "", errSlow
		}
		e := p.b[p.i]
		p.i++
		if i := strings.IndexByte(`"\/bfnrt`, e); i >= 0 {
			points = append(points, int("\"\\/\b\f\n\r\t"[i]))
			continue
		}
		if e != 'u' || len(p.b)-p.i < 4 {
			return "", errSlow
		}
		u, err := strconv.ParseUint(string(p.b[p.i:p.i+4]), 16, 16)
		if err != nil {
			return "", errSlow
		}
		p.i += 4
		n := len(points)
		if n > 0 && u>>10 == 0xdc00>>10 && points[n-1] < 0 {
			points[n-1] = 0x10000 + (-points[n-1]-0xd800)<<10 + int(u) - 0xdc00
			continue
		}
		if u>>10 == 0xd800>>10 {
			points = append(points, -int(u)) // may yet find its partner
			continue
		}
		points = append(points, int(u))
	}
}

func (p *slowParser) number() (*slowValue, error) {
	start := p.i
	digits := func() bool {
		from := p.i
		for p.i < len(p.b) && p.b[p.i] >= '0' && p.b[p.i] <= '9' {
			p.i++
		}
		return p.i > from
	}
	p.is("-")
	if !p.is("0") && !digits() || p.is(".") && !digits() {
		return nil, errSlow
	}
	if p.is("e") || p.is("E") {
		if !p.is("-") {
			p.is("+")
		}
		if !digits() {
			return nil, errSlow
		}
	}
	r, ok := new(big.Rat).SetString(string(p.b[start:p.i]))
	if !ok {
		return nil, errSlow
	}
	return &slowValue{kind: "number", scalar: r.RatString()}, nil
}

// slowIncluded tries every placement. Each exception is a path and whether it
// is volatile.
func slowIncluded(a, b *slowValue, at []string, volatile [][]string) bool {
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case "object":
		for k, v := range a.fields {
			if b.fields[k] == nil || !slowIncluded(v, b.fields[k], append(slices.Clone(at), slowKey(k)), volatile) {
				return false
			}
		}
		return true
	case "array":
		return slowPlaced(a.list, b.list, at, volatile)
	}
	return a.scalar == b.scalar || slices.ContainsFunc(volatile, func(p []string) bool {
		return slices.EqualFunc(p, at, func(x, y string) bool { return x == "*" || x == y })
	})
}

// slowKey turns the code points of an ASCII key back into text.
func slowKey(k string) string {
	var b strings.Builder
	for _, f := range strings.Fields(strings.Trim(k, "[]")) {
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			n = utf8.RuneError
		}
		b.WriteRune(rune(n))
	}
	return b.String()
}

func slowPlaced(a, b []*slowValue, at []string, volatile [][]string) bool {
	// can[i][j]: the elements from i on can be placed among those from j on.
	can := make([][]bool, len(a)+1)
	for i := len(a); i >= 0; i-- {
		can[i] = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a):
				can[i][j] = true
			case j < len(b):
				can[i][j] = can[i][j+1] || can[i+1][j+1] &&
					slowIncluded(a[i], b[j], append(slices.Clone(at), strconv.Itoa(i)), volatile)
			}
		}
	}
	return can[0][0]
}

func slowRecords(content string) ([]*slowValue, bool) {
	var list []*slowValue
	for line := range strings.SplitSeq(strings.TrimPrefix(content, "\uFEFF"), "\n") {
		if strings.Trim(line, " \t\r") == "" {
			continue
		}
		v, err := slowDocument([]byte(line))
		if err != nil || v.kind != "object" {
			return nil, false
		}
		list = append(list, v)
	}
	return list, len(list) > 0
}

func slowJSON(content string) (*slowValue, bool) {
	v, err := slowDocument([]byte(strings.TrimPrefix(content, "\uFEFF")))
	return v, err == nil && (v.kind == "object" || v.kind == "array")
}

func slowText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func slowLines(s string) []string {
	lines := strings.Split(s, "\n")
	for i := range lines[:len(lines)-1] {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

// slowAdditive is the rule for a file that cannot be run.
func slowAdditive(old, new string, volatile [][]string) bool {
	if old == "" {
		return true
	}
	doc, isDoc := slowJSON(old)
	records, isRecords := slowRecords(old)
	if isDoc || isRecords {
		if isDoc {
			if now, ok := slowJSON(new); ok {
				return slowIncluded(doc, now, nil, volatile)
			}
		}
		now, ok := slowRecords(new)
		return isRecords && ok && slowPlaced(records, now, nil, volatile)
	}
	const mark = "\uFEFF"
	if !slowText(old) || !slowText(new) || strings.HasPrefix(old, mark) != strings.HasPrefix(new, mark) {
		return false
	}
	if strings.HasPrefix(old, "#!") {
		rest, ok := strings.CutPrefix(new, old)
		if !ok || rest != "" && !strings.HasSuffix(old, "\n") && rest[0] != '\n' && !strings.HasPrefix(rest, "\r\n") {
			return false
		}
	}
	lines := slowLines(strings.TrimPrefix(new, mark))
	for _, l := range slowLines(strings.TrimPrefix(old, mark)) {
		i := slices.Index(lines, l)
		if i < 0 {
			return false
		}
		lines = lines[i+1:]
	}
	return true
}
