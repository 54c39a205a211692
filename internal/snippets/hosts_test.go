package snippets

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// server is an entry of a host's configuration. Each field is one that at least
// one host knows; any other name is an error.
type server struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// input is something that VS Code asks its user for.
type input struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	Description string `json:"description"`
	Password    bool   `json:"password"`
}

// format is what is particular to the file of a host.
type format struct {
	key      string         // of the object that holds the servers
	types    bool           // whether a server has to say its type
	variable *regexp.Regexp // what is filled in, by name; nil: nothing
}

var formats = map[string]format{
	"claude_desktop_config.json": {key: "mcpServers"},
	".vscode/mcp.json":           {key: "servers", types: true, variable: regexp.MustCompile(`\$\{input:([\w-]+)\}`)},
	".mcp.json":                  {key: "mcpServers", variable: regexp.MustCompile(`\$\{(\w+)\}`)},
	".cursor/mcp.json":           {key: "mcpServers", variable: regexp.MustCompile(`\$\{env:(\w+)\}`)},
}

// hostFile is a host's configuration as the page has it.
type hostFile struct {
	format
	server server
	inputs []input
}

// parse reads the configuration as its host does.
func parse(t *testing.T, b block) hostFile {
	t.Helper()
	h := hostFile{format: formats[b.file]}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(b.text), &keys); err != nil {
		t.Fatalf("%s: %v", b.file, err)
	}
	for key := range keys {
		if key != h.key && (b.file != ".vscode/mcp.json" || key != "inputs") {
			t.Fatalf("%s: key %q is not one that the host reads", b.file, key)
		}
	}
	var servers map[string]server
	strict(t, keys[h.key], &servers)
	if len(servers) != 1 || servers["notes"].Command+servers["notes"].URL == "" {
		t.Fatalf("%s: no server notes: %s", b.file, b.text)
	}
	h.server = servers["notes"]
	if want := map[bool]string{true: "stdio", false: "http"}[h.server.URL == ""]; h.types && h.server.Type != want {
		t.Errorf("%s: type %q, want %q", b.file, h.server.Type, want)
	}
	if raw, ok := keys["inputs"]; ok {
		strict(t, raw, &h.inputs)
	}
	return h
}

// header returns the Authorization header, the token filled in where the host
// fills in.
func (h hostFile) header(t *testing.T, token string) string {
	t.Helper()
	return h.variable.ReplaceAllStringFunc(h.server.Headers["Authorization"], func(v string) string {
		name := h.variable.FindStringSubmatch(v)[1]
		asked := slices.ContainsFunc(h.inputs, func(i input) bool { return i.ID == name && i.Type == "promptString" && i.Password })
		if name != "SANDBOXD_TOKEN" && !asked {
			t.Errorf("%s is neither in the environment nor asked for", v)
		}
		return token
	})
}

func strict(t *testing.T, raw json.RawMessage, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
}

// TestHosts does with each configuration of docs/connect.md what its host does:
// it starts the command, or goes to the URL with the token.
func TestHosts(t *testing.T) {
	var commands, urls []string
	d := serveWithTokens(t)
	for _, b := range blocks(t, "docs/connect.md") {
		if b.file == "" || b.lang != "json" {
			continue
		}
		h := parse(t, b)
		if h.server.URL == "" {
			commands = append(commands, b.file)
			t.Run("command/"+b.file, func(t *testing.T) {
				use(t, overStdio(t, h.server.Command, h.server.Args...))
			})
		} else {
			urls = append(urls, b.file)
			t.Run("url/"+b.file, func(t *testing.T) {
				use(t, d.connect(t, h.server.URL, h.header(t, d.token)))
			})
		}
	}
	for name, f := range formats {
		if !slices.Contains(commands, name) && !slices.Contains(urls, name) {
			t.Errorf("the page has no %s", name)
		}
		if f.variable != nil && !slices.Contains(urls, name) {
			t.Errorf("the page has no %s with a URL", name)
		}
	}
}

// TestAttachesToTheDaemon: the page's command and the page's daemon on one state
// folder are one server.
func TestAttachesToTheDaemon(t *testing.T) {
	d := serveWithTokens(t)
	use(t, overStdio(t, program.Path, "serve", "--stdio", filepath.Join(clone, "guests", "notes"), "--state", d.State, "--cache", program.Cache))
	metrics := d.get(t, "/metrics")
	want := `sandboxd_calls_total{outcome="ok",tool="list_notes"} 1`
	if !strings.Contains(metrics, want) {
		t.Errorf("the daemon has not counted the call of the process that attached:\n%s", metrics)
	}
}

// TestClaudeCode runs the page's lines of `claude mcp add` in a shell, with a
// claude that says what it was given.
func TestClaudeCode(t *testing.T) {
	d := serveWithTokens(t)
	added := 0
	for _, b := range blocks(t, "docs/connect.md") {
		if !strings.HasPrefix(b.text, "claude mcp add ") {
			continue
		}
		added++
		name, rest, options := claudeAdd(t, b.text, d.token)
		if name != "notes" || options["--scope"] != "user" {
			t.Errorf("%s: adds %q for %q", b.text, name, options["--scope"])
		}
		switch options["--transport"] {
		case "":
			use(t, overStdio(t, rest[0], rest[1:]...))
		case "http":
			_, value, _ := strings.Cut(options["--header"], ": ")
			use(t, d.connect(t, rest[0], value))
		default:
			t.Errorf("%s: transport %q", b.text, options["--transport"])
		}
	}
	if added != 2 {
		t.Errorf("%d lines, want one for a command and one for a URL", added)
	}
}

// claudeAdd reads a line as claude does: options, a name, and a URL or, after
// --, a command.
func claudeAdd(t *testing.T, line, token string) (name string, rest []string, options map[string]string) {
	t.Helper()
	options = map[string]string{}
	words := inShell(t, "claude() { shift 2; printf '%s\\n' \"$@\"; }\n"+line, "SANDBOXD_TOKEN="+token)
	for args := strings.Split(strings.TrimSuffix(words, "\n"), "\n"); len(args) > 0; {
		switch {
		case args[0] == "--":
			return name, args[1:], options
		case strings.HasPrefix(args[0], "--") && len(args) > 1:
			options[args[0]], args = args[1], args[2:]
		case name == "":
			name, args = args[0], args[1:]
		default:
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return name, rest, options
}

// TestCurl runs the page's line of curl.
func TestCurl(t *testing.T) {
	d := serveWithTokens(t)
	for _, b := range blocks(t, "docs/connect.md") {
		if !strings.HasPrefix(b.text, "curl ") {
			continue
		}
		for token, want := range map[string]string{d.token: "No notes saved.", "sbx_wrong": "401"} {
			line := strings.ReplaceAll(b.text, pageAddress, d.address())
			if token == "sbx_wrong" {
				line = strings.Replace(line, "curl ", "curl -i ", 1)
			}
			if out := inShell(t, line, "SANDBOXD_TOKEN="+token); !strings.Contains(out, want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
		return
	}
	t.Error("the page has no curl")
}
