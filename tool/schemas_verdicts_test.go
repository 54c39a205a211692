package tool_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/sandboxd/sandboxd/tool"
)

// Each line of verdicts.jsonl is an outputSchema, values, and for each 1 where it
// fits or 0 where it does not, by the specification and exact numbers; or that
// the schema is refused.
func TestVerdicts(t *testing.T) {
	f, err := os.Open("testdata/verdicts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	verdicts := map[string]int{}
	for lines.Scan() {
		var row struct {
			Schema json.RawMessage
			Values []string
			Want   string
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		got := verdict(row.Schema, row.Values)
		if got != row.Want {
			t.Errorf("%s %q: got %s, want %s", row.Schema, row.Values, got, row.Want)
		}
		verdicts[got]++
	}
	if err := lines.Err(); err != nil || verdicts["refused"] == 0 || verdicts["0"] == 0 || verdicts["1"] == 0 {
		t.Errorf("verdicts %v, %v", verdicts, err)
	}
}

func verdict(schema json.RawMessage, values []string) (got string) {
	definitions, err := tool.ParseDescription(fmt.Appendf(nil, `{"tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":%s}]}`, schema))
	if err != nil {
		return "refused"
	}
	all, err := tool.NewSchemas(definitions)
	if err != nil {
		return err.Error() // what is listed must compile
	}
	for _, v := range values {
		if _, err := all[0].Output(json.RawMessage(v)); err == nil {
			got += "1"
		} else {
			got += "0"
		}
	}
	return got
}
