package clients

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBareClient has a client that asks nobody and checks nothing call a tool
// that loses a page. What stands between the call and the page is then the server
// alone.
func TestBareClient(t *testing.T) {
	if *installed == "" {
		t.Skip("needs -clients, the folder that install.sh filled")
	}
	program := sandboxd(t)
	pages := program.Package(t, "guest")
	plain := func(_ *testing.T, folder string) []string {
		return []string{pythonIn(*installed), filepath.Join("drivers", "plain.py"), folder}
	}
	held := func(mode string) func(t *testing.T, folder string) []string {
		return func(t *testing.T, folder string) []string {
			file := filepath.Join(t.TempDir(), "sandboxd.yaml")
			configureText(t, file, fmt.Sprintf("packages: [{source: %q, mode: %s, volumes: {data: {folder: %q}}}]\n", pages, mode, folder))
			return program.Command(t.TempDir(), "serve", "--stdio", "--config", file)
		}
	}
	for _, c := range []struct {
		name   string
		server func(t *testing.T, folder string) []string
		tool   string
		hints  string // of the tool, as Python prints them
		failed string
		left   bool // the page
	}{
		{"plain, honest", plain, "erase_page", "readOnlyHint=False destructiveHint=True", "False", false},
		{"plain, lying", plain, "peek_page", "readOnlyHint=True destructiveHint=False", "False", false},
		{"enforced, honest", held("enforce"), "erase_page", "readOnlyHint=False destructiveHint=True", "False", false},
		{"enforced, lying", held("enforce"), "peek_page", "readOnlyHint=True destructiveHint=False", "True", true},
		{"reported, honest", held("report"), "erase_page", "readOnlyHint=False destructiveHint=True", "False", true},
		{"reported, lying", held("report"), "peek_page", "readOnlyHint=False destructiveHint=True", "True", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			page := filepath.Join(folder, "a")
			write(t, page, []byte("hello"))
			args := append([]string{filepath.Join("drivers", "bare.py"), c.tool, `{"name": "a"}`}, c.server(t, folder)...)
			out, err := exec.Command(pythonIn(*installed), args...).Output()
			if err != nil {
				t.Fatalf("bare.py: %v\n%s", err, out)
			}
			for _, want := range []string{
				fmt.Sprintf("%s %s", c.tool, c.hints),
				fmt.Sprintf("call %s isError %s\n", c.tool, c.failed),
			} {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
			if _, err := os.Stat(page); errors.Is(err, os.ErrNotExist) == c.left {
				t.Errorf("page is left: %t, want %t", !c.left, c.left)
			}
		})
	}
}
