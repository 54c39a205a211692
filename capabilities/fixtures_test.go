package capabilities

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fixture is a tool of a real server with the hints that it declares.
type fixture struct {
	Name string `json:"name"`
	Claim
}

// TestFixturesGolden derives, for each tool of real servers, the effective
// claim and the grant that it would get in a package that requests one volume
// for writing.
func TestFixturesGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "fixtures", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	policy := Policy{Volumes: []VolumeGrant{{Name: "data", Path: "/data", Access: WriteAccess}}}
	var w bytes.Buffer
	total := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tools []fixture
		if err := json.Unmarshal(b, &tools); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		total += len(tools)
		fmt.Fprintf(&w, "%s: %d tools\n", strings.TrimSuffix(filepath.Base(file), ".json"), len(tools))
		for _, f := range tools {
			e := f.Effective()
			note := ""
			if f.Contradictory() {
				note = " contradictory"
			}
			fmt.Fprintf(&w, "\t%-40s %s %s %s%s\n", f.Name, declared(f.Claim), e.letters(), Derive(e, policy).Volume("data"), note)
		}
	}
	if len(files) != 17 || total != 462 {
		t.Errorf("%d servers with %d tools, want 17 with 462", len(files), total)
	}
	golden(t, "fixtures.golden", w.Bytes())
}

// declared writes hints as RDIO: lower case for false, a dot for absent.
func declared(c Claim) string {
	b := []byte("....")
	for i, t := range []Tri{c.ReadOnly, c.Destructive, c.Idempotent, c.OpenWorld} {
		switch t {
		case True:
			b[i] = "RDIO"[i]
		case False:
			b[i] = "rdio"[i]
		case Unset:
		}
	}
	return string(b)
}
