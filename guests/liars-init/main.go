// Command liars-init is a reactor that writes to its volume while it is
// initialised, when no request has come and no tool's claim is on trial.
package main

import (
	"os"
	"time"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func init() {
	if err := os.WriteFile("/data/started.txt", []byte(time.Now().String()), 0o644); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
	}
	sdk.Register(sdk.Tool(
		"uptime", uptime,
		sdk.Description("Tells when the package was started."),
		sdk.ReadOnly(true), sdk.OpenWorld(false),
	))
}

func uptime(*sdk.Call, struct{}) (string, error) {
	b, err := os.ReadFile("/data/started.txt")
	return string(b), err
}

func main() { sdk.Main() }
