// Noter is a guest that tells its client how far it is.
package main

import "github.com/sandboxd/sandboxd/guests/sdk"

func count(c *sdk.Call, in struct {
	Steps int `json:"steps"`
},
) (sdk.Result, error) {
	for i := range in.Steps {
		c.Progress(float64(i+1), float64(in.Steps), "counting")
	}
	c.Log("notice", "counted")
	r := sdk.Text("done")
	r.Content = append(r.Content, sdk.Content{Type: "resource", Resource: &sdk.Resource{URI: "test://n", Text: "n"}})
	r.Meta = map[string]any{"example.com/steps": in.Steps}
	return r, nil
}

func init() { sdk.Register(sdk.Tool("count", count, sdk.ReadOnly(true), sdk.OpenWorld(false))) }

func main() { sdk.Main() }
