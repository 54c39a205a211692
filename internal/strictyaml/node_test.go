package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestNodeJSON(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want, err := json.Marshal(anyJSON(rt, 3))
		if err != nil {
			rt.Fatal(err)
		}
		n, err := ParseJSON("f", want)
		if err != nil {
			rt.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(n.JSON(true), &b) != nil {
			rt.Fatalf("not JSON: %s", n.JSON(true))
		}
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			rt.Fatalf("%s became %s", x, y)
		}
		if again, err := ParseJSON("f", n.JSON(true)); err != nil || !bytes.Equal(again.JSON(true), n.JSON(true)) {
			rt.Fatalf("not stable: %v", err)
		}
		if y, err := ParseYAML("f", n.JSON(false)); err == nil && !bytes.Equal(y.JSON(true), n.JSON(true)) {
			rt.Fatalf("YAML reads it as %s, not %s", y.JSON(true), n.JSON(true))
		}
	})
}

func anyJSON(rt *rapid.T, depth int) any {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(rt, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(rt, "bool")
	case 2:
		return rapid.Float64Range(-1e300, 1e300).Draw(rt, "number")
	case 3:
		return rapid.String().Draw(rt, "text")
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(rt, "length") {
			list = append(list, anyJSON(rt, depth-1))
		}
		return list
	}
	m := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(rt, "length") {
		m[rapid.String().Draw(rt, "key")] = anyJSON(rt, depth-1)
	}
	return m
}
