package strictyaml

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of a document. The parser recurses for each level and for each key of
// a block mapping, copies the path of each key, and rescans runs of blank
// lines: these bounds keep it far from the end of the stack and below a second.
const (
	MaxDocument = 1 << 20 // bytes
	maxDepth    = 64      // levels of lists and mappings
	maxTokens   = 1 << 16
	maxKeys     = 2000 // of one block mapping
	maxKey      = 256  // bytes of a key
	maxBlank    = 64   // blank lines in a row
	maxPaths    = 64 << 20
)

// ParseYAML parses one YAML document without anchors, aliases, tags and
// explicit keys. What it returns has distinct keys. file names it in errors,
// which are all an [*Error].
func ParseYAML(file string, b []byte) (n *Node, err error) {
	y := &yamlReader{file: file}
	defer func() {
		if r := recover(); r != nil {
			n, err = nil, y.errorf(0, 0, "not YAML that can be read", "check indentation and quotes")
		}
	}()
	if err := y.checkBytes(b); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(b), "\ufeff"))
	if err := y.checkTokens(tokens); err != nil {
		return nil, err
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, y.syntax(err)
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return nil, y.errorf(0, 0, "not one YAML document", "write one mapping, without --- in between")
	}
	if n, err = y.convert(f.Docs[0].Body, nil, 0); err != nil {
		return nil, err
	}
	return n, nil
}

type yamlReader struct {
	file string
	tab  int // first line, counted from 1, whose indentation holds a tab; 0: none
}

func (y *yamlReader) errorf(line, column int, problem, mend string) *Error {
	return &Error{File: y.file, Line: line, Column: column, Problem: problem, Mend: mend}
}

func (y *yamlReader) at(t *token.Token, problem, mend string) *Error {
	if t == nil || t.Position == nil {
		return y.errorf(0, 0, problem, mend)
	}
	return y.errorf(t.Position.Line, t.Position.Column, problem, mend)
}

// syntax turns an error of the parser into one line with its place.
func (y *yamlReader) syntax(err error) *Error {
	var located yaml.Error
	if errors.As(err, &located) {
		if t := located.GetToken(); t != nil && t.Position != nil && t.Position.Line == y.tab {
			return y.errorf(y.tab, 1, "a tab in the indentation", "indent with spaces")
		}
		return y.at(located.GetToken(), Clip(located.GetMessage()), "check indentation and quotes")
	}
	return y.errorf(0, 0, "not YAML", "check indentation and quotes")
}

func (y *yamlReader) checkBytes(b []byte) error {
	if len(b) > MaxDocument {
		return y.errorf(0, 0, "larger than 1 MiB", "shorten it")
	}
	if !utf8.Valid(b) {
		return y.errorf(0, 0, "not UTF-8", "save the file as UTF-8")
	}
	blank := 0
	for i, line := range strings.Split(string(b), "\n") {
		if col := strings.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r == 0x7f }); col >= 0 {
			return y.errorf(i+1, col+1, "a control character", "remove it")
		}
		if strings.IndexByte(strings.TrimSuffix(line, "\r"), '\r') >= 0 {
			return y.errorf(i+1, 1, "a carriage return inside a line", "end lines with a line feed")
		}
		indentation := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if y.tab == 0 && strings.Contains(indentation, "\t") {
			y.tab = i + 1
		}
		if blank++; strings.TrimSpace(line) != "" {
			blank = 0
		}
		if blank > maxBlank {
			return y.errorf(i+1, 1, fmt.Sprintf("more than %d blank lines in a row", maxBlank), "remove some")
		}
	}
	return nil
}

// checkTokens refuses what is not read, and what would cost the parser too
// much, before it starts.
func (y *yamlReader) checkTokens(tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return y.errorf(0, 0, fmt.Sprintf("more than %d YAML tokens", maxTokens), "shorten the file")
	}
	var l levels
	line, longest, paths, begun := 0, 0, 0, false
	for i, t := range tokens {
		if t.Position == nil {
			return y.errorf(0, 0, "not YAML", "check indentation and quotes")
		}
		if refused := refusedToken(t.Type); refused != "" {
			return y.at(t, refused+" is not read", "write the value out in plain form")
		}
		if t.Type == token.DocumentHeaderType && begun {
			return y.at(t, "a second YAML document", "write one mapping, without --- in between")
		}
		begun = begun || t.Type != token.CommentType
		first := t.Position.Line != line || (i > 0 && tokens[i-1].Type == token.SequenceEntryType)
		line = t.Position.Line
		if !l.see(t, first) {
			return y.at(t, fmt.Sprintf("nested deeper than %d levels, or more than %d keys in one mapping", maxDepth, maxKeys), "flatten it")
		}
		if t.Type == token.MappingValueType && i > 0 {
			if len(tokens[i-1].Value) > maxKey {
				return y.at(t, fmt.Sprintf("a key longer than %d bytes", maxKey), "shorten it")
			}
			longest = max(longest, len(tokens[i-1].Value)+2)
		}
		if paths += (len(l.columns) + l.flow + 1) * (longest + 8); paths > maxPaths {
			return y.at(t, "too many long keys at too great a depth", "shorten them")
		}
	}
	return nil
}

func refusedToken(t token.Type) string {
	switch t {
	case token.AnchorType:
		return "an anchor (&)"
	case token.AliasType:
		return "an alias (*)"
	case token.TagType:
		return "a tag (!)"
	case token.MergeKeyType:
		return "a merge key (<<)"
	case token.MappingKeyType:
		return "an explicit key (?)"
	case token.DirectiveType:
		return "a directive (%)"
	case token.InfinityType, token.NanType:
		return "an infinity or not-a-number"
	}
	return ""
}

// levels follows how deep block and flow collections are nested, from above:
// it counts columns that may open a level.
type levels struct {
	columns []int
	keys    []int
	flow    int
}

// see takes the next token into account. first says that it begins a line or
// follows the dash of a list. It returns false when a limit is passed.
func (l *levels) see(t *token.Token, first bool) bool {
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		l.flow++
	case token.MappingEndType, token.SequenceEndType:
		l.flow = max(0, l.flow-1)
	}
	if first && l.flow == 0 {
		c := t.Position.Column
		for len(l.columns) > 0 && l.columns[len(l.columns)-1] > c {
			l.columns, l.keys = l.columns[:len(l.columns)-1], l.keys[:len(l.keys)-1]
		}
		if len(l.columns) == 0 || l.columns[len(l.columns)-1] < c {
			l.columns, l.keys = append(l.columns, c), append(l.keys, 0)
		}
		l.keys[len(l.keys)-1]++
	}
	return len(l.columns)+l.flow <= maxDepth && (len(l.keys) == 0 || l.keys[len(l.keys)-1] <= maxKeys)
}

// convert returns the value of a node that the trail leads to.
func (y *yamlReader) convert(a ast.Node, tr *Trail, depth int) (*Node, error) {
	if a == nil {
		return nil, y.errorf(0, 0, "a value is missing", "write it after the colon").below(tr)
	}
	t := a.GetToken()
	if depth > maxDepth {
		return nil, y.at(t, fmt.Sprintf("nested deeper than %d levels", maxDepth), "flatten it").below(tr)
	}
	n := &Node{}
	if t != nil && t.Position != nil {
		n.Line, n.Column = t.Position.Line, t.Position.Column
	}
	switch v := a.(type) {
	case *ast.NullNode:
		n.Kind = Null
	case *ast.BoolNode:
		n.Kind, n.Truth = Bool, v.Value
	case *ast.StringNode:
		n.Kind, n.Text = Text, v.Value
		// The parser takes 1e+3 for text; YAML 1.2 and JSON take it for a number.
		if text, ok := number(v.Value); ok && t.Type == token.StringType {
			n.Kind, n.Text = Number, text
		}
	case *ast.LiteralNode:
		n.Kind = Text
		if v.Value != nil {
			n.Text = v.Value.Value
		}
	case *ast.IntegerNode, *ast.FloatNode:
		text, ok := yamlNumber(t.Value)
		if !ok {
			return nil, y.at(t, "the number "+Quote(t.Value)+" can be read in more than one way", "write it in decimal, or in quotes if it is text").below(tr)
		}
		n.Kind, n.Text = Number, text
	case *ast.SequenceNode:
		return n, y.convertList(n, v, tr, depth)
	case *ast.MappingNode:
		return n, y.convertMap(n, v.Values, tr, depth)
	case *ast.MappingValueNode:
		return n, y.convertMap(n, []*ast.MappingValueNode{v}, tr, depth)
	default:
		return nil, y.at(t, "a "+strings.ToLower(a.Type().YAMLName())+" is not read", "write the value out in plain form").below(tr)
	}
	return n, nil
}

func (y *yamlReader) convertList(n *Node, v *ast.SequenceNode, tr *Trail, depth int) error {
	n.Kind = List
	for i, item := range v.Values {
		c, err := y.convert(item, &Trail{up: tr, index: i}, depth+1)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, c)
	}
	return nil
}

func (y *yamlReader) convertMap(n *Node, values []*ast.MappingValueNode, tr *Trail, depth int) error {
	n.Kind = Map
	seen := make(map[string]bool, len(values))
	for i, kv := range values {
		t := kv.Key.GetToken()
		s, ok := kv.Key.(*ast.StringNode)
		if !ok {
			return y.at(t, "a key that is not text: "+Quote(t.Value), "put it in quotes").below(tr)
		}
		if i == 0 && t.Position != nil {
			n.Line, n.Column = t.Position.Line, t.Position.Column
		}
		entryTrail := &Trail{up: tr, key: s.Value, index: -1}
		if seen[s.Value] {
			return y.at(t, "is there twice", "remove one").below(entryTrail)
		}
		seen[s.Value] = true
		c, err := y.convert(kv.Value, entryTrail, depth+1)
		if err != nil {
			return err
		}
		n.Entries = append(n.Entries, Entry{s.Value, t.Position.Line, t.Position.Column, c})
	}
	return nil
}

// yamlNumber returns a YAML number as JSON spells it. Forms that YAML 1.1 and
// 1.2 read differently (010) are refused.
func yamlNumber(s string) (string, bool) {
	if text, ok := number(s); ok {
		return text, true
	}
	plain := strings.TrimPrefix(s, "+")
	if i, ok := new(big.Int).SetString(plain, 0); ok && len(plain) > 2 && strings.ContainsAny(plain[1:2], "xob") {
		return number(i.String())
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil || strings.ContainsAny(plain, "xXpP_") || strings.HasPrefix(strings.TrimPrefix(plain, "-"), "0") && !strings.Contains(plain, ".") {
		return "", false
	}
	return number(strconv.FormatFloat(f, 'g', -1, 64))
}
