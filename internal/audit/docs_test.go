package audit_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/sandboxd/sandboxd/internal/audit"
)

// The document names every field and every type of a record.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []audit.Type{
		audit.TypeCall, audit.TypeViolation, audit.TypeDenial, audit.TypeLoad, audit.TypeApprove, audit.TypeConfig, audit.TypeOutbox,
	}
	for f := range reflect.TypeFor[audit.Record]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, audit.Type(name))
	}
	for _, name := range names {
		if !strings.Contains(string(doc), "`"+string(name)+"`") {
			t.Errorf("docs/audit.md does not name `%s`", name)
		}
	}
}
