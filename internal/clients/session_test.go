package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// session is a client that is connected to a server.
type session interface {
	// Protocol returns the version that was negotiated.
	Protocol() string
	List(ctx context.Context) ([]listed, error)
	// Call calls a tool. The error is the protocol's.
	Call(ctx context.Context, c call) (*reply, error)
	// Changed waits until the server has said that its list of tools changed.
	Changed(ctx context.Context) error
	Close() error
}

// call is a call of a tool.
type call struct {
	Tool      string `json:"tool"`
	Arguments any    `json:"arguments"`
	Cancel    bool   `json:"cancel"` // at the first report of progress
	Notes     int    `json:"-"`      // waited for, by a client that hands them out apart from the result
}

// listed is a tool as tools/list carries it.
type listed struct {
	Name        string `json:"name"`
	Annotations struct {
		ReadOnly    *bool `json:"readOnlyHint"`
		Destructive *bool `json:"destructiveHint"`
		Idempotent  *bool `json:"idempotentHint"`
		OpenWorld   *bool `json:"openWorldHint"`
	} `json:"annotations"`
	Meta struct {
		Enforcement *struct {
			Mode string `json:"mode"`
		} `json:"dev.sandboxd/enforcement"`
	} `json:"_meta"`
}

// String returns the tool's name and hints; ? where one is not there.
func (l listed) String() string {
	s := l.Name
	for _, h := range []*bool{l.Annotations.ReadOnly, l.Annotations.Destructive, l.Annotations.Idempotent, l.Annotations.OpenWorld} {
		if h == nil {
			s += " ?"
		} else {
			s += fmt.Sprintf(" %t", *h)
		}
	}
	return s
}

// reply is what came of a call.
type reply struct {
	Result    result    `json:"result"`
	Cancelled bool      `json:"cancelled"`
	Progress  []float64 `json:"progress"`
	Log       []string  `json:"log"`
}

// result is a tool's result (schema.ts, CallToolResult).
type result struct {
	IsError bool `json:"isError"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	Meta struct {
		Call struct {
			ID        string `json:"id"`
			Committed bool   `json:"committed"`
		} `json:"dev.sandboxd/call"`
		Violation *struct {
			Hint      string `json:"hint"`
			Operation string `json:"operation"`
			Object    string `json:"object"`
		} `json:"dev.sandboxd/violation"`
	} `json:"_meta"`
}

func (r result) text() string {
	var s []string
	for _, c := range r.Content {
		s = append(s, c.Text)
	}
	return strings.Join(s, "\n")
}

// protocolError is an error of JSON-RPC, whichever client saw it.
type protocolError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *protocolError) Error() string { return fmt.Sprintf("code %d: %s", e.Code, e.Message) }

// target is a server to connect to.
type target struct {
	Command []string `json:"command,omitempty"` // over standard input and output
	URL     string   `json:"url,omitempty"`     // over Streamable HTTP
	Token   string   `json:"token,omitempty"`
	Log     string   `json:"log,omitempty"` // level of the messages that the client asks for
}

// client is a kind of client.
type client struct {
	name     string
	protocol string // what it is to negotiate
	open     func(t *testing.T, to target) session
}

// recode turns a client's own form of something into ours.
func recode(from, to any) error {
	b, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, to)
}
