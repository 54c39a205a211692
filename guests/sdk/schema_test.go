package sdk

import (
	"fmt"
	"strings"
	"testing"
)

type loop struct {
	Next *loop `json:"next,omitempty"`
}

func TestToolRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		make func()
		want string
	}{
		"name":         {func() { Tool("no spaces", echo) }, "tool name"},
		"not a struct": {func() { make1[[]string]() }, "want a struct"},
		"recursive":    {func() { make1[loop]() }, "contains itself"},
		"channel":      {func() { make1[struct{ C chan int }]() }, "not supported"},
		"map keys":     {func() { make1[struct{ M map[int]int }]() }, "string keys"},
		"enum": {func() {
			make1[struct {
				N int `enum:"a"`
			}]()
		}, "tag enum"},
		"default": {func() {
			make1[struct {
				N int `default:"9" maximum:"5"`
			}]()
		}, "tag default"},
		"bound": {func() {
			make1[struct {
				S string `minimum:"1"`
			}]()
		}, "tag minimum"},
		"length": {func() {
			make1[struct {
				N int `minLength:"1"`
			}]()
		}, "tag minLength"},
		"string option": {func() {
			make1[struct {
				N int `json:",string"`
			}]()
		}, "not supported"},
		"same name": {func() {
			make1[struct {
				nested
				Other int `json:"key"`
			}]()
		}, "named twice"},
		"embedded pointer": {func() { make1[struct{ *nested }]() }, "embedded"},
		"output list":      {func() { Tool("t", func(*Call, struct{}) ([]int, error) { return nil, nil }) }, "want string"},
		"twice": {func() {
			d := Tool("t", echo)
			Register(d, d)
		}, "registered twice"},
	} {
		t.Run(name, func(t *testing.T) {
			register(t)
			defer func() {
				if r := recover(); !strings.Contains(fmt.Sprint(r), c.want) {
					t.Errorf("got %v, want %s", r, c.want)
				}
			}()
			c.make()
		})
	}
}

func make1[In any]() Definition {
	return Tool("t", func(*Call, In) (string, error) { return "", nil })
}

func TestToolNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "Az09_.-": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a b": false, "a\"": false, "é": false, "a\n": false,
	} {
		if validName(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}
