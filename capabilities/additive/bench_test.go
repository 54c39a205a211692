package additive

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

// record is a note as a program writes one.
func record(i int) string {
	return fmt.Sprintf(`{"id":%d,"title":"Note number %d","text":"Remember the milk, and \"something\" else.","tags":["home","todo"],"created_at":"2026-11-30T04:05:%02d.123456Z","done":false,"weight":%d.25}`, i, i, i%60, i%1000)
}

func repeated(n int, between string, item func(int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(item(i))
	}
	return b.String()
}

const benchRecords = 1 << 16

func benchmark(b *testing.B, old, new string) {
	b.SetBytes(int64(len(new)))
	b.ReportAllocs()
	for b.Loop() {
		m := newMeter(context.Background(), int64(len(old)+len(new)))
		p := &pair{
			m:   m,
			old: &source{r: strings.NewReader(old), size: int64(len(old)), m: m, short: io.ErrUnexpectedEOF},
			new: &source{r: strings.NewReader(new), size: int64(len(new)), m: m, short: io.ErrUnexpectedEOF},
		}
		if v := p.judge(); v.why != "" || m.err != nil {
			b.Fatal(v, m.err)
		}
	}
}

// BenchmarkJSONLines judges a file that keeps its records and gains some.
func BenchmarkJSONLines(b *testing.B) {
	old := repeated(benchRecords, "\n", record) + "\n"
	more := repeated(benchRecords/1000, "\n", record) + "\n"
	b.Run("appended", func(b *testing.B) { benchmark(b, old, old+more) })
	b.Run("in-front", func(b *testing.B) { benchmark(b, old, more+old) })
}

// BenchmarkJSON judges one document.
func BenchmarkJSON(b *testing.B) {
	list := repeated(benchRecords, ",\n  ", record)
	more := repeated(benchRecords/1000, ",\n  ", record)
	b.Run("appended", func(b *testing.B) { benchmark(b, "[\n  "+list+"\n]\n", "[\n  "+list+",\n  "+more+"\n]\n") })
	b.Run("in-front", func(b *testing.B) { benchmark(b, "[\n  "+list+"\n]\n", "[\n  "+more+",\n  "+list+"\n]\n") })
	b.Run("in-object", func(b *testing.B) {
		benchmark(b, `{"version":9,"notes":[`+list+"]}", `{"new":10,"version":9,"notes":[`+list+",\n  "+more+"]}")
	})
	b.Run("written-otherwise", func(b *testing.B) { benchmark(b, "["+list+"]", strings.ReplaceAll("["+list+"]", `":`, `": `)) })
}

// BenchmarkText judges lines.
func BenchmarkText(b *testing.B) {
	line := func(i int) string { return strings.ReplaceAll(record(i), "{", "x") }
	old := repeated(benchRecords, "\n", line) + "\n"
	more := repeated(benchRecords/1000, "\n", line) + "\n"
	b.Run("appended", func(b *testing.B) { benchmark(b, old, old+more) })
	b.Run("between", func(b *testing.B) { benchmark(b, old+old, old+more+old) })
	b.Run("CRLF", func(b *testing.B) { benchmark(b, old, strings.ReplaceAll(old, "\n", "\r\n")) })
}
