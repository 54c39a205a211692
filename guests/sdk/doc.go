// Package sdk lets a Go program be a sandboxd tool package. Tools are typed
// handlers; their JSON Schemas come from the Go types:
//
//	type addInput struct {
//		Title string `json:"title" description:"the title of the note"`
//		Body  string `json:"body,omitempty"`
//	}
//
//	func init() {
//		sdk.Register(sdk.Tool("add_note", add, sdk.ReadOnly(false), sdk.Destructive(false)))
//	}
//
//	func main() { sdk.Main() }
//
// The same program is either kind of module: plain `go build` makes a command,
// `go build -buildmode=c-shared` a reactor, both with GOOS=wasip1 GOARCH=wasm.
// Built for the machine it is an ordinary program, so handlers are tested with
// `go test` and [Run].
//
// # Types
//
// The input of a tool is a struct. Each exported field is one argument, named
// as encoding/json names it. An argument is required unless its field is a
// pointer, has omitempty or omitzero, or has a default. Arguments that no field
// names, null and wrong spellings are errors.
//
// Supported are bool, all integers and floats, string, structs, embedded
// structs, slices, arrays, maps with string keys, pointers, [time.Time],
// []byte (base64), [encoding/json.RawMessage] and any. A type that contains itself, a
// channel, a function or a complex number panics when the tool is made.
//
// These struct tags go into the schema and are checked before the handler runs:
//
//	description:"text"            what the argument is for
//	enum:"a,b"                    the values allowed, for strings and numbers
//	default:"10"                  JSON for the value taken when it is absent; text for a string
//	minimum:"1" maximum:"100"     bounds, for numbers
//	minLength:"1" maxLength:"80"  bounds in characters, for strings
//
// The output is a string (the text of the result), a struct or a map with
// string keys (structured content, with the same JSON as text, or what a method
// Text() string of it returns) or a [Result].
//
// # Clients
//
// [Call.Progress] and [Call.Log] reach the client while a call runs, where it asked
// for that. [Call.Logf] reaches the operator.
package sdk
