// Command guest has the tools that the conformance suite of the Model Context
// Protocol calls. What they answer is what the suite looks for.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func init() {
	sdk.Register(
		sdk.Tool("test_simple_text", simple),
		sdk.Tool("test_image_content", contents(image)),
		sdk.Tool("test_audio_content", contents(sound)),
		sdk.Tool("test_embedded_resource", contents(resource("test://embedded-resource"))),
		sdk.Tool("test_multiple_content_types", contents(
			sdk.Content{Type: "text", Text: "A text, an image and a resource."}, image, resource("test://mixed-content-resource"),
		)),
		sdk.Tool("test_error_handling", fail),
		sdk.Tool("test_tool_with_logging", log),
		sdk.Tool("test_tool_with_progress", progress),
		sdk.Tool("test_logging_tool", log),
		sdk.Tool("test_missing_capability", sampling),
		sdk.Tool("test_streaming_elicitation", progress),
		sdk.Tool("test_x_mcp_header", region),
		sdk.Tool("json_schema_2020_12_tool", contact),
	)
}

func main() { sdk.Main() }

// pause lies between two notes, so that they are not one write.
const pause = 50 * time.Millisecond

var (
	image = sdk.Content{Type: "image", MIMEType: "image/png", Data: pixel}
	sound = sdk.Content{Type: "audio", MIMEType: "audio/wav", Data: silence}
)

func resource(uri string) sdk.Content {
	return sdk.Content{Type: "resource", Resource: &sdk.Resource{URI: uri, MIMEType: "text/plain", Text: "A resource."}}
}

func contents(cs ...sdk.Content) func(*sdk.Call, struct{}) (sdk.Result, error) {
	return func(*sdk.Call, struct{}) (sdk.Result, error) { return sdk.Result{Content: cs}, nil }
}

func simple(*sdk.Call, struct{}) (string, error) {
	return "This is a simple text response for testing.", nil
}

func fail(*sdk.Call, struct{}) (string, error) {
	return "", errors.New("this tool intentionally returns an error for testing")
}

func log(c *sdk.Call, _ struct{}) (string, error) {
	for i, s := range []string{"started", "working", "done"} {
		if i > 0 {
			time.Sleep(pause)
		}
		c.Log("info", s)
	}
	return "Wrote three messages to the log.", nil
}

func progress(c *sdk.Call, _ struct{}) (string, error) {
	for _, p := range []float64{0, 50, 100} {
		c.Progress(p, 100, fmt.Sprintf("%v of 100", p))
		time.Sleep(pause)
	}
	return "Reported progress three times.", nil
}

// sampling runs for clients alone that declare sampling.
func sampling(*sdk.Call, struct{}) (string, error) {
	return "The client declares sampling.", nil
}

type place struct {
	Region string `json:"region,omitempty"`
	Level  int    `json:"level,omitempty"`
}

func region(_ *sdk.Call, in place) (string, error) { return "region=" + in.Region, nil }

type address struct {
	Street string `json:"street,omitempty"`
	City   string `json:"city,omitempty"`
}

type person struct {
	Name          string   `json:"name,omitempty"`
	Address       *address `json:"address,omitempty"`
	ContactMethod string   `json:"contactMethod,omitempty"`
	Phone         string   `json:"phone,omitempty"`
	Email         string   `json:"email,omitempty"`
}

func contact(_ *sdk.Call, in person) (string, error) {
	return fmt.Sprintf("%s is reached by %s%s", in.Name, in.Phone, in.Email), nil
}
