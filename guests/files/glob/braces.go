package glob

import (
	"strconv"
	"strings"
)

// maxExpansions bounds how many patterns braces make: what is more is left out, as
// minimatch does beyond a bound of its own.
const maxExpansions = 10_000

// expand returns the patterns that braces stand for, each once: a{b,c} is ab and
// ac, a{1..3} is a1, a2 and a3. What is no set stays as it is.
func expand(pattern string) []string {
	seen := map[string]bool{}
	var out []string
	for _, p := range expansions(pattern) {
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// expansions expands the sets of a pattern from left to right.
func expansions(pattern string) []string {
	made := []string{""}
	from := 0 // what lies before was put to all of made
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			end, members := set(pattern, i)
			if members == nil || i > 0 && pattern[i-1] == '$' || strings.HasPrefix(pattern[i:], "{}") {
				continue
			}
			made = product(made, pattern[from:i], members)
			from = end + 1
			i = end
		}
	}
	return product(made, pattern[from:], []string{""})
}

// product joins each of made with the text and each of the members.
func product(made []string, text string, members []string) []string {
	var out []string
	for _, m := range made {
		for _, member := range members {
			if len(out) == maxExpansions {
				return out
			}
			out = append(out, m+text+member)
		}
	}
	return out
}

// set returns where the set that opens at i ends and what it stands for, nil where
// it is none: a brace without its other half, or without a comma and no sequence.
func set(pattern string, i int) (end int, members []string) {
	depth, comma, from := 0, false, i+1
	for j := i; j < len(pattern); j++ {
		switch pattern[j] {
		case '\\':
			j++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				comma = true
				members = append(members, expansions(pattern[from:j])...)
				from = j + 1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			body := pattern[i+1 : j]
			if comma {
				return j, append(members, expansions(pattern[from:j])...)
			}
			if s := sequence(body); s != nil {
				return j, s
			}
			if !strings.Contains(body, ",") {
				return 0, nil
			}
			for _, inner := range expansions(body) { // {{a,b}} is {a} and {b}
				members = append(members, "{"+inner+"}")
			}
			return j, members
		}
	}
	return 0, nil
}

// sequence returns what a body as 1..3, 01..10..2 or a..e stands for; nil where it is
// none.
func sequence(body string) []string {
	ends := strings.Split(body, "..")
	if len(ends) != 2 && len(ends) != 3 {
		return nil
	}
	step := 1
	if len(ends) == 3 {
		n, err := strconv.Atoi(ends[2])
		if err != nil {
			return nil
		}
		step = max(n, -n, 1)
	}
	first, last := letter(ends[0]), letter(ends[1])
	show := func(n int) string { return string(rune(n)) }
	if first < 0 || last < 0 {
		var err1, err2 error
		first, err1 = strconv.Atoi(ends[0])
		last, err2 = strconv.Atoi(ends[1])
		if err1 != nil || err2 != nil {
			return nil
		}
		show = padded(ends[0], ends[1])
	}
	if last < first {
		step = -step
	}
	var out []string
	for n := first; (step > 0) == (n <= last) || n == last; n += step {
		if len(out) == maxExpansions {
			break
		}
		out = append(out, show(n))
	}
	return out
}

// letter returns an ASCII letter as a number, -1 for anything else.
func letter(s string) int {
	if len(s) == 1 && (s[0]|0x20) >= 'a' && (s[0]|0x20) <= 'z' {
		return int(s[0])
	}
	return -1
}

// padded writes numbers as wide as the wider end, where one has a leading zero.
func padded(ends ...string) func(int) string {
	width, pad := 0, false
	for _, e := range ends {
		width = max(width, len(e))
		digits := strings.TrimPrefix(e, "-")
		pad = pad || len(digits) > 1 && digits[0] == '0'
	}
	return func(n int) string {
		s := strconv.Itoa(n)
		if !pad || len(s) >= width {
			return s
		}
		sign, digits := "", s
		if n < 0 {
			sign, digits = "-", s[1:]
		}
		return sign + strings.Repeat("0", width-len(s)) + digits
	}
}
