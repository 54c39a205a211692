// Command stock is a server of the file tools and echo as one writes it with the
// SDK alone: typed handlers, the SDK's defaults, Go's defaults.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	root := flag.String("root", ".", "folder that the tools work on")
	address := flag.String("http", "", "serve Streamable HTTP on this address; empty: standard input and output")
	stateless := flag.Bool("stateless", false, "keep no sessions, which clients of 2026-07-28 need")
	flag.Parse()
	if err := serve(*root, *address, *stateless); err != nil {
		fmt.Fprintln(os.Stderr, "stock:", err)
		os.Exit(1)
	}
}

func serve(root, address string, stateless bool) error {
	files, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	t := &tools{name: root, files: files}
	s := mcp.NewServer(&mcp.Implementation{Name: "stock", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Answers with its argument."}, t.echo)
	mcp.AddTool(s, &mcp.Tool{Name: "read_text_file", Description: "Reads a file."}, t.read)
	mcp.AddTool(s, &mcp.Tool{Name: "list_directory", Description: "Lists a folder."}, t.list)
	mcp.AddTool(s, &mcp.Tool{Name: "search_files", Description: "Searches for files."}, t.search)
	mcp.AddTool(s, &mcp.Tool{Name: "edit_file", Description: "Edits a file."}, t.edit)
	if address == "" {
		return s.Run(context.Background(), &mcp.StdioTransport{})
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	var options *mcp.StreamableHTTPOptions
	if stateless {
		options = &mcp.StreamableHTTPOptions{Stateless: true}
	}
	fmt.Fprintf(os.Stderr, "listening: MCP at http://%s/mcp\n", listener.Addr())
	return http.Serve(listener, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, options))
}

// tools work on one folder, whose name paths begin with.
type tools struct {
	name  string
	files *os.Root
}

// output is what the tools of files answer, as those of server-filesystem do: the
// text, and the same as structured content.
type output struct {
	Content string `json:"content"`
}

func answer(text string, err error) (*mcp.CallToolResult, output, error) {
	if err != nil {
		return nil, output{}, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, output{text}, nil
}

func (t *tools) local(name string) (string, error) {
	rel, err := filepath.Rel(t.name, name)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s: outside of %s", name, t.name)
	}
	return rel, nil
}

type echoInput struct {
	Text string `json:"text" jsonschema:"what to answer"`
}

func (t *tools) echo(_ context.Context, _ *mcp.CallToolRequest, in echoInput) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
}

type pathInput struct {
	Path string `json:"path"`
}

func (t *tools) read(_ context.Context, _ *mcp.CallToolRequest, in pathInput) (*mcp.CallToolResult, output, error) {
	name, err := t.local(in.Path)
	if err != nil {
		return answer("", err)
	}
	b, err := t.files.ReadFile(name)
	return answer(string(b), err)
}

func (t *tools) list(_ context.Context, _ *mcp.CallToolRequest, in pathInput) (*mcp.CallToolResult, output, error) {
	name, err := t.local(in.Path)
	if err != nil {
		return answer("", err)
	}
	entries, err := fs.ReadDir(t.files.FS(), name)
	var lines []string
	for _, e := range entries {
		kind := "[FILE] "
		if e.IsDir() {
			kind = "[DIR] "
		}
		lines = append(lines, kind+e.Name())
	}
	return answer(strings.Join(lines, "\n"), err)
}

type searchInput struct {
	Path    string `json:"path"`
	Pattern string `json:"pattern"`
}

// search looks for a name in the folder and all below it; the pattern begins
// with **/.
func (t *tools) search(_ context.Context, _ *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, output, error) {
	top, err := t.local(in.Path)
	if err != nil {
		return answer("", err)
	}
	pattern, ok := strings.CutPrefix(in.Pattern, "**/")
	if !ok {
		return answer("", errors.New("a pattern begins with **/"))
	}
	var found []string
	err = fs.WalkDir(t.files.FS(), top, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		match, err := path.Match(pattern, e.Name())
		if match {
			found = append(found, path.Join(t.name, name))
		}
		return err
	})
	return answer(strings.Join(found, "\n"), err)
}

type editInput struct {
	Path  string `json:"path"`
	Edits []struct {
		OldText string `json:"oldText"`
		NewText string `json:"newText"`
	} `json:"edits"`
}

// edit writes the file anew under another name and puts it in its place.
func (t *tools) edit(_ context.Context, _ *mcp.CallToolRequest, in editInput) (*mcp.CallToolResult, output, error) {
	name, err := t.local(in.Path)
	if err != nil {
		return answer("", err)
	}
	b, err := t.files.ReadFile(name)
	if err != nil {
		return answer("", err)
	}
	text := string(b)
	for _, e := range in.Edits {
		if !strings.Contains(text, e.OldText) {
			return answer("", fmt.Errorf("no %q in %s", e.OldText, in.Path))
		}
		text = strings.Replace(text, e.OldText, e.NewText, 1)
	}
	if err := t.files.WriteFile(name+".new", []byte(text), 0o644); err != nil {
		return answer("", err)
	}
	return answer("edited", t.files.Rename(name+".new", name))
}
