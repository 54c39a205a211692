package runtime

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/tool"
)

// errWarmUp: the call that the manifest wants made ahead does not end well.
var errWarmUp = errors.New("call that is made ahead")

// warmUpRequest returns the request of a warm-up, which fits its tool as one of a
// client has to.
func warmUpRequest(w *tool.Warmup, definitions []tool.Definition) ([]byte, error) {
	schemas, err := tool.NewSchemas(definitions)
	if err != nil {
		return nil, err
	}
	for i, d := range definitions {
		if d.Name != w.Tool {
			continue
		}
		arguments, err := schemas[i].Arguments(bytes.TrimSpace(w.Arguments))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrArguments, err)
		}
		return newDelivery(w.Tool, rand.Text(), arguments), nil
	}
	return nil, fmt.Errorf("%q: %w", w.Tool, ErrNoTool)
}

// warm makes the call of the manifest's warm-up, before any request is delivered:
// the instance has what start-up code has.
func (f *factory) warm(ctx context.Context, i *Instance) error {
	answer, err := i.callReactor(ctx, f.warmUp, f.limits.Output)
	if err != nil {
		return err
	}
	out, _, err := parseOutput(ctx, answer, f.limits.Output)
	if err == nil && out.IsError {
		err = fmt.Errorf("%w: it answered with an error: %.500s", errWarmUp, firstText(out))
	}
	return err
}

func firstText(out Output) string {
	var c struct {
		Text string `json:"text"`
	}
	if len(out.Content) > 0 && json.Unmarshal(out.Content[0], &c) == nil && c.Text != "" {
		return c.Text
	}
	return "it says no more"
}
