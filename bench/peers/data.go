package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandboxd/sandboxd/bench/peers/report"
)

// fileText is what the file that is read holds.
var fileText = strings.Repeat("0123456789abcdef", 256) // 4 KiB

const fileName = "read.txt"

// makeData makes the files that are worked on.
func (l *lab) makeData() error {
	data := l.path("data")
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	return fill(data)
}

// fill makes one copy of the files.
func fill(data string) error {
	files := map[string]string{fileName: fileText}
	for i := range 100 {
		files[fmt.Sprintf("flat/file%03d.txt", i)] = "a file of a hundred\n"
	}
	for i := range 10 {
		for j := range 20 {
			files[fmt.Sprintf("tree/folder%d/note%02d.md", i, j)] = "a note\n"
		}
		files[fmt.Sprintf("tree/folder%d/needle%d.txt", i, i)] = "a needle\n"
	}
	// Each server edits files of its own, and so does each caller.
	for _, row := range []string{report.SandboxdStdio, report.SandboxdHTTP, report.SandboxdCommand, report.StockStdio, report.StockStdio400, report.StockHTTP, report.NodeStdio} {
		for caller := range mostCallers {
			files[editName(row, caller)] = editText
		}
	}
	return writeFiles(data, files)
}

// mostCallers is how many callers there are at once, at most.
const mostCallers = 16

// editText is 4 KB, with the line that is edited in the middle.
var editText = strings.Repeat("a line that stays as it is\n", 75) + "the first state\n" + strings.Repeat("a line that stays as it is\n", 75)

// editName returns the name of the file that a caller of a server edits.
func editName(row string, caller int) string {
	return fmt.Sprintf("edit/%s-%d.txt", strings.ReplaceAll(strings.ReplaceAll(row, ",", ""), " ", "-"), caller)
}

// fillGraph makes a folder with a knowledge graph of 100 entities.
func fillGraph(folder string) error {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, `{"type":"entity","name":"entity-%03d","entityType":"kind","observations":["observed once","observed twice"]}`+"\n", i)
	}
	return writeFiles(folder, map[string]string{"memory.jsonl": b.String()})
}

func writeFiles(data string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
