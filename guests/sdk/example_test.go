package sdk_test

import (
	"fmt"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func ExampleTool() {
	type input struct {
		Name string `json:"name" description:"who is greeted"`
	}
	sdk.Register(sdk.Tool("greet", func(_ *sdk.Call, in input) (string, error) {
		return "Hello, " + in.Name + ".", nil
	}, sdk.ReadOnly(true), sdk.OpenWorld(false)))

	fmt.Printf("%s\n", sdk.Run([]byte(`{"tool":"greet","arguments":{"name":"Ada"}}`)))
	// Output: {"content":[{"type":"text","text":"Hello, Ada."}]}
}
