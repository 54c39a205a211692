package tool

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPrebuilt(t *testing.T) {
	const head, tail = "# An example.\nname: a\n", "tools: [{name: t, description: 'source: x', inputSchema: {type: object}}]\n"
	module := "module: \"m.wasm\"\n"
	for name, c := range map[string]struct{ text, want string }{
		"flow":                {head + "source: {language: go, dir: .} # here\n# The tools.\n" + tail, head + module + "# The tools.\n" + tail},
		"block":               {head + "source:\n  # where\n  language: go\n\n  dir: .\n\n# The tools.\n" + tail, head + module + "\n# The tools.\n" + tail},
		"quoted":              {head + "\"source\" :\n    language: go\n" + tail, head + module + tail},
		"last":                {head + tail + "source: {language: go,\n  dir: .}", head + tail + module},
		"first, CRLF":         {"source: {language: go}\r\nname: a\r\n" + tail, module + "name: a\r\n" + tail},
		"one line":            {"{name: a, source: {language: go}, tools: [{name: t, inputSchema: {type: object}}]}", ""},
		"indented":            {" name: a\n source: {language: go}\n " + tail, ""},
		"after a folded text": {"tools:\n- name: t\n  inputSchema: {type: object}\n  description: >\n    a\n\n    source: b\nsource: {language: go}\nname: a\n", "tools:\n- name: t\n  inputSchema: {type: object}\n  description: >\n    a\n\n    source: b\n" + module + "name: a\n"},
	} {
		dir := folder(t, map[string]string{"tool.yaml": c.text})
		p, err := Load(dir, func(string, Source, ABI) ([]byte, error) { return []byte(emptyModule), nil })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := p.Prebuilt("m.wasm")
		if string(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
		if err != nil {
			continue
		}
		again, err := Load(folder(t, map[string]string{"tool.yaml": string(got), "m.wasm": emptyModule}), nil)
		if err != nil || again.Digest != p.Digest {
			t.Errorf("%s: another package: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "tool.yaml"), []byte(c.text+"\n"+"version: 1.2.3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Prebuilt("m.wasm"); err == nil {
			t.Errorf("%s: a manifest that changed gives %q", name, got)
		}
	}
}
