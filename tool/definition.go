package tool

import (
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/capabilities"
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
func (d *decoder) definitions(v value, manifest bool) []Definition {
	items := v.each("write a list of tools")
	if v.n != nil && v.n.kind == listKind && len(items) == 0 {
		mend := "list at least one tool"
		if !manifest {
			mend = "register tools in an init function: a reactor does not run main"
		}
		v.fail("is empty", mend)
	}
	if len(items) > maxTools {
		v.fail(fmt.Sprintf("more than %d tools", maxTools), "split the package")
		return nil
	}
	seen := make(map[string]string, len(items))
	tools := make([]Definition, 0, len(items))
	for _, item := range items {
		known := fieldsOf["tools[]"]
		var o object
		if manifest {
			o = item.object(known...)
		} else {
			o = item.open(slices.DeleteFunc(slices.Clone(known), func(f string) bool { return f == "idempotencyKeyArgument" })...)
		}
		t := d.definition(o, manifest)
		if d.failed() {
			return nil
		}
		if other, ok := seen[fold(t.Name)]; ok {
			problem := quote(t.Name) + " is there twice"
			if other != t.Name {
				problem = quote(t.Name) + " and " + quote(other) + " differ by case only"
			}
			o.field("name").fail(problem, "rename one")
		}
		seen[fold(t.Name)] = t.Name
		tools = append(tools, t)
	}
	return tools
}

func (d *decoder) definition(o object, manifest bool) Definition {
	var t Definition
	t.Name = o.required("name").pattern(ValidToolName, "write 1 to 128 letters, digits, underscores, hyphens and dots")
	t.Title = o.field("title").shown(maxTitle, false, "write one line")
	t.Description = o.field("description").shown(maxDescription, true, "write text")
	title := ""
	t.Claim, title = d.annotations(o.field("annotations"))
	if t.Title == "" {
		t.Title = title
	}
	in, out := o.required("inputSchema"), o.field("outputSchema")
	t.InputSchema = d.schema(in, true)
	t.OutputSchema = d.schema(out, false)
	if manifest {
		t.IdempotencyKeyArgument = d.keyArgument(o.field("idempotencyKeyArgument"), in.n)
	}
	return t
}

// annotations reads title and the four hints. A hint that is null is an error:
// whether it was meant to be absent or false is not for a host to guess.
func (d *decoder) annotations(v value) (capabilities.Claim, string) {
	var c capabilities.Claim
	if !v.present() {
		return c, ""
	}
	o := v.object(fieldsOf["tools[].annotations"]...)
	hint := func(h capabilities.Hint) capabilities.Tri {
		f := o.field(h.String())
		if !f.is(boolKind, "write true or false, or leave it out") {
			return capabilities.Unset
		}
		return capabilities.TriOf(f.n.truth)
	}
	c.ReadOnly = hint(capabilities.ReadOnlyHint)
	c.Destructive = hint(capabilities.DestructiveHint)
	c.Idempotent = hint(capabilities.IdempotentHint)
	c.OpenWorld = hint(capabilities.OpenWorldHint)
	return c, o.field("title").shown(maxTitle, false, "write one line")
}

// shown returns a text that people and models read: of limited length, without
// hidden characters, on one line unless lines are allowed.
func (v value) shown(most int, lines bool, mend string) string {
	if !v.is(stringKind, mend) {
		return ""
	}
	s := v.n.text
	if len(s) > most {
		v.fail(fmt.Sprintf("longer than %d bytes", most), "shorten it")
	}
	if h := hiddenIn(s); h != "" {
		v.fail("holds "+h, "remove it")
	}
	if !lines && containsBreak(s) {
		v.fail("has more than one line", mend)
	}
	return s
}

func containsBreak(s string) bool {
	for _, r := range s {
		if r == '\n' || r == '\r' {
			return true
		}
	}
	return false
}

// keyArgument returns the argument that carries an idempotency key: a property
// of the input schema whose type is string.
func (d *decoder) keyArgument(v value, schema *node) string {
	if !v.present() {
		return ""
	}
	s := v.text("write the name of an argument")
	if t := schema.get("properties").get(s).get("type"); t == nil || t.kind != stringKind || t.text != "string" {
		v.fail(quote(s)+" is not an argument of type string in inputSchema", "declare it there")
	}
	return s
}
