package tool

import (
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// Limits of a definition, in bytes. What a client shows to people and models
// for each tool should not be able to crowd out the rest.
const (
	maxTitle       = 256
	maxDescription = 8 << 10
	maxSchema      = 64 << 10
)

// definitions reads the tools of a manifest, or what a module says of itself,
// which may hold fields of MCP's Tool that are of no use here.
func (d *decoder) definitions(v strictyaml.Value, manifest bool) []Definition {
	items := v.Each("write a list of tools")
	if v.Node != nil && v.Node.Kind == strictyaml.List && len(items) == 0 {
		mend := "list at least one tool"
		if !manifest {
			mend = "register tools in an init function: a reactor does not run main"
		}
		v.Fail("is empty", mend)
	}
	if len(items) > maxTools {
		v.Fail(fmt.Sprintf("more than %d tools", maxTools), "split the package")
		return nil
	}
	seen := make(map[string]string, len(items))
	tools := make([]Definition, 0, len(items))
	for _, item := range items {
		known := fieldsOf["tools[]"]
		var o strictyaml.Value
		if manifest {
			o = item.Object(known...)
		} else {
			o = item.Open(slices.DeleteFunc(slices.Clone(known), func(f string) bool { return f == "idempotencyKeyArgument" })...)
		}
		t := d.definition(o, manifest)
		if d.Failed() {
			return nil
		}
		if other, ok := seen[strictyaml.Fold(t.Name)]; ok {
			problem := strictyaml.Quote(t.Name) + " is there twice"
			if other != t.Name {
				problem = strictyaml.Quote(t.Name) + " and " + strictyaml.Quote(other) + " differ by case only"
			}
			o.Field("name").Fail(problem, "rename one")
		}
		seen[strictyaml.Fold(t.Name)] = t.Name
		tools = append(tools, t)
	}
	return tools
}

func (d *decoder) definition(o strictyaml.Value, manifest bool) Definition {
	var t Definition
	t.Name = o.Required("name").Pattern(ValidToolName, "write 1 to 128 letters, digits, underscores, hyphens and dots")
	if ReservedToolName(t.Name) {
		o.Field("name").Fail(strictyaml.Quote(t.Name)+" is kept for tools of the host's own", "take a name that does not begin with sandboxd_")
	}
	t.Title = o.Field("title").Shown(maxTitle, false, "write one line")
	t.Description = o.Field("description").Shown(maxDescription, true, "write text")
	title := ""
	t.Claim, title = d.annotations(o.Field("annotations"))
	if t.Title == "" {
		t.Title = title
	}
	in, out := o.Required("inputSchema"), o.Field("outputSchema")
	t.InputSchema = d.schema(in, true)
	t.OutputSchema = d.schema(out, false)
	t.ClientCapabilities = d.clientCapabilities(o.Field("clientCapabilities"))
	if manifest {
		t.IdempotencyKeyArgument = d.keyArgument(o.Field("idempotencyKeyArgument"), in.Node)
	}
	return t
}

// Capabilities that a client of MCP may declare and a tool may require
// (2026-07-28, schema.ts, ClientCapabilities).
const (
	ClientElicitation = "elicitation"
	ClientRoots       = "roots"
	ClientSampling    = "sampling"
)

// ClientCapabilities returns the capabilities of clients that a tool may
// require, sorted.
func ClientCapabilities() []string {
	return []string{ClientElicitation, ClientRoots, ClientSampling}
}

// clientCapabilities reads a set of names: their order says nothing, so it is
// not part of the digest.
func (d *decoder) clientCapabilities(v strictyaml.Value) []string {
	if !v.Present() {
		return nil
	}
	names := v.Texts("write a list of elicitation, roots and sampling", func(s string) bool {
		return slices.Contains(ClientCapabilities(), s)
	})
	slices.Sort(names)
	return names
}

// annotations reads title and the four hints. A hint that is null is an error:
// whether it was meant to be absent or false is not for a host to guess.
func (d *decoder) annotations(v strictyaml.Value) (capabilities.Claim, string) {
	var c capabilities.Claim
	if !v.Present() {
		return c, ""
	}
	o := v.Object(fieldsOf["tools[].annotations"]...)
	hint := func(h capabilities.Hint) capabilities.Tri {
		f := o.Field(h.String())
		if !f.Is(strictyaml.Bool, "write true or false, or leave it out") {
			return capabilities.Unset
		}
		return capabilities.TriOf(f.Node.Truth)
	}
	c.ReadOnly = hint(capabilities.ReadOnlyHint)
	c.Destructive = hint(capabilities.DestructiveHint)
	c.Idempotent = hint(capabilities.IdempotentHint)
	c.OpenWorld = hint(capabilities.OpenWorldHint)
	return c, o.Field("title").Shown(maxTitle, false, "write one line")
}

// keyArgument returns the argument that carries an idempotency key: a property
// of the input schema whose type is string.
func (d *decoder) keyArgument(v strictyaml.Value, schema *strictyaml.Node) string {
	if !v.Present() {
		return ""
	}
	s := v.Text("write the name of an argument")
	if t := schema.Get("properties").Get(s).Get("type"); t == nil || t.Kind != strictyaml.Text || t.Text != "string" {
		v.Fail(strictyaml.Quote(s)+" is not an argument of type string in inputSchema", "declare it there")
	}
	return s
}
