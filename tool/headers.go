package tool

import (
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// headerKeyword maps an argument to a request header (SEP-2243). A server that
// registers a bad one ends there, so none gets that far.
const headerKeyword = "x-mcp-header"

// header checks a schema's x-mcp-header: a token of HTTP (RFC 9110 5.6.2),
// once in a tool without regard to case, on a property whose type is string,
// integer or boolean.
func (c *schemaCheck) header(o strictyaml.Value, chain bool) {
	f := o.Field(headerKeyword)
	if !f.Present() {
		return
	}
	if !chain || o.Node == c.root.Node {
		f.Fail("is not on a property of inputSchema", "move it to an argument below properties")
		return
	}
	const mend = "write a header name, for example Region"
	name := f.Pattern(httpToken, mend)
	if len(name) > 64 {
		f.Fail("longer than 64 bytes", mend)
	}
	if t := o.Node.Get("type"); t == nil || t.Kind != strictyaml.Text || t.Text != "string" && t.Text != "integer" && t.Text != "boolean" {
		f.Fail("is on an argument that is not of one type string, integer or boolean", "remove it")
	}
	if other, ok := c.headers[strictyaml.Fold(name)]; ok {
		f.Fail("the header "+strictyaml.Quote(name)+" is at "+other.String()+" already", "rename one")
	}
	c.headers[strictyaml.Fold(name)] = o.Trail
}

// httpToken reports whether s is a token of HTTP.
func httpToken(s string) bool {
	for _, c := range []byte(s) {
		alnum := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		mark := false
		for _, m := range []byte("!#$%&'*+-.^_`|~") {
			mark = mark || c == m
		}
		if !alnum && !mark {
			return false
		}
	}
	return s != ""
}
