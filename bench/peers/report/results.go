// Package report turns measurements into REPORT.md, its plots, and the verdict
// on each goal.
package report

import (
	"time"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
)

// Results are all measurements of one run.
type Results struct {
	Machine Machine
	Command string // that made them
	Short   bool   // too few rounds to say anything
	Tables  []*Table
	Memory  []MemoryRow
	Curves  []*Curve

	Residues []Residue
}

// Table is a group of subjects that took turns.
type Table struct {
	ID, Title  string
	Conditions string // protocol version, callers, what is counted as CPU
	Client     bool   // show what the client used, which is this process
	Base       string // name of the row that the others are compared with; empty: none
	Rows       []Row
}

// Row is one subject of a table.
type Row struct {
	Name    string
	Series  *measure.Series // nil where there is none
	Missing string          // why there is none, with the mend
}

// MemoryRow is what a server takes while it does nothing.
type MemoryRow struct {
	Name    string
	Memory  measure.Memory
	Missing string
}

// Curve is how a cost grows.
type Curve struct {
	ID, Title string
	X, Y      string // labels, with units
	Log       bool   // both axes
	Lines     []Line
}

// Line is one subject of a curve.
type Line struct {
	Name    string
	Points  []Point
	Missing string
}

// Point is one measurement of a line.
type Point struct{ X, Y float64 }

// Table returns a table by its ID; nil where it was not measured.
func (r *Results) Table(id string) *Table {
	for _, t := range r.Tables {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Row returns a row by its name, or why there is none.
func (t *Table) Row(name string) (*measure.Series, string) {
	if t == nil {
		return nil, "the table was left out"
	}
	for _, r := range t.Rows {
		if r.Name != name {
			continue
		}
		switch {
		case r.Series == nil:
			return nil, name + ": " + r.Missing
		case r.Series.Err != nil:
			return nil, r.Series.Err.Error()
		}
		return r.Series, ""
	}
	return nil, name + ": no such row"
}

// Failures returns the rows that did not answer as they should.
func (r *Results) Failures() []error {
	var all []error
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			if row.Series != nil && row.Series.Err != nil {
				all = append(all, row.Series.Err)
			}
		}
	}
	return all
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
