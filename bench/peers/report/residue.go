package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Residue is what the residue test found of one guest, made in one way: a line of
// the file that it writes.
type Residue struct {
	Guest    string
	Kind     string
	Strategy string
	Method   string
	Callers  int
	Wanted   int // calls
	Calls    int // calls that were made
	Found    int // calls that found something of another
	Seconds  float64
}

// ReadResidue reads the residue test's file.
func ReadResidue(r io.Reader) ([]Residue, error) {
	var all []Residue
	d := json.NewDecoder(r)
	for {
		var one Residue
		err := d.Decode(&one)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("residue, line %d: %w", len(all)+1, err)
		}
		all = append(all, one)
	}
}

func (r *Results) residue(b *strings.Builder) {
	b.WriteString("\n## Residue\n\n")
	if len(r.Residues) == 0 {
		b.WriteString("Not measured here: see `go test ./runtime -run Residue`, whose file -residue shows.\n")
		return
	}
	b.WriteString("A call of another principal searches everything that it can reach for what the call before it left.\n\n| guest | kind | strategy | method | callers | calls | found |\n| --- | --- | --- | --- | --: | --: | --: |\n")
	for _, one := range r.Residues {
		calls := fmt.Sprint(one.Calls)
		if one.Calls < one.Wanted {
			calls += fmt.Sprintf(" of %d", one.Wanted)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %d | %s | %d |\n", cell(one.Guest), cell(one.Kind), cell(one.Strategy), cell(one.Method), one.Callers, calls, one.Found)
	}
}
