package wasmtest

import (
	"fmt"
	"regexp"
	"strings"
)

var documented = regexp.MustCompile("\\*\\*`(\\w+) \\(([^)]*)\\) -> (\\w+)`\\*\\*")

// Documented returns the functions that a page has in the section of a module, by
// their names: "(i32, i32) -> i32", without the names of parameters.
func Documented(page, module string) (map[string]string, error) {
	_, section, ok := strings.Cut(page, "\n### "+module+"\n")
	if !ok {
		return nil, fmt.Errorf("section %s: not there", module)
	}
	if end := regexp.MustCompile(`\n##+ `).FindStringIndex(section); end != nil {
		section = section[:end[0]]
	}
	list := map[string]string{}
	for _, f := range documented.FindAllStringSubmatch(section, -1) {
		var params []string
		for p := range strings.SplitSeq(f[2], ",") {
			_, kind, _ := strings.Cut(p, ": ")
			params = append(params, kind)
		}
		list[f[1]] = "(" + strings.Join(params, ", ") + ") -> " + f[3]
	}
	return list, nil
}

// Signature writes a type as [Documented] does.
func Signature(params, results []byte) string {
	names := func(types []byte) string {
		var list []string
		for _, t := range types {
			list = append(list, map[byte]string{I32: "i32", I64: "i64", F64: "f64"}[t])
		}
		return strings.Join(list, ", ")
	}
	return "(" + names(params) + ") -> " + names(results)
}
