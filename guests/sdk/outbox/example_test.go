//go:build !wasip1

package outbox_test

import (
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
)

// A tool that tells somebody else about an order. With a key of its own an order
// is told once, however often the tool is called.
func Example() {
	type input struct {
		Order string `json:"order" description:"the order's number"`
	}
	sdk.Register(sdk.Tool("confirm", func(_ *sdk.Call, in input) (string, error) {
		err := outbox.Send(outbox.Message{
			Host: "hooks.example.com", Path: "/confirmed", ContentType: "application/json",
			Body: fmt.Appendf(nil, "{\"order\":%q}", in.Order), Key: "confirmed-" + in.Order,
		})
		if errors.Is(err, outbox.ErrDenied) {
			return "", errors.New("the operator does not let this tool tell hooks.example.com")
		}
		return "Will be told.", err
	}, sdk.Idempotent(true), sdk.OpenWorld(true)))

	outbox.Reset() // the double of tests: a host delivers what was sent after the call
	for range 2 {
		fmt.Printf("%s\n", sdk.Run([]byte(`{"tool":"confirm","arguments":{"order":"7"}}`)))
	}
	for _, m := range outbox.Sent() {
		fmt.Printf("%s https://%s%s %s\n", m.Method, m.Host, m.Path, m.Body)
	}
	// Output:
	// {"content":[{"type":"text","text":"Will be told."}]}
	// {"content":[{"type":"text","text":"Will be told."}]}
	// POST https://hooks.example.com/confirmed {"order":"7"}
}
