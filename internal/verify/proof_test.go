package verify_test

import (
	"testing"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/verify"
	"github.com/sandboxd/sandboxd/tool"
)

func TestProve(t *testing.T) {
	volume := func(a capabilities.Access) tool.Requests {
		return tool.Requests{Volumes: []tool.VolumeRequest{{Name: "data", Access: a}}}
	}
	http := func(methods ...string) tool.Requests {
		return tool.Requests{HTTP: []tool.HTTPRequest{{Host: "example.com", Methods: methods}}}
	}
	for name, c := range map[string]struct {
		r    tool.Requests
		want verify.Proof
	}{
		"nothing":        {tool.Requests{}, verify.Proof{ReadOnly: true, Closed: true}},
		"volume":         {volume(capabilities.NoAccess), verify.Proof{Closed: true}},
		"volume, write":  {volume(capabilities.WriteAccess), verify.Proof{Closed: true}},
		"volume, read":   {volume(capabilities.ReadAccess), verify.Proof{ReadOnly: true, Closed: true}},
		"keys":           {tool.Requests{KV: true}, verify.Proof{Closed: true}},
		"database":       {tool.Requests{SQL: []string{"main"}}, verify.Proof{Closed: true}},
		"outbox":         {tool.Requests{Outbox: []string{"example.com"}}, verify.Proof{}},
		"service":        {tool.Requests{Services: []string{"db"}}, verify.Proof{}},
		"http, safe":     {http("GET", "HEAD"), verify.Proof{ReadOnly: true}},
		"http, unsafe":   {http("GET", "POST"), verify.Proof{}},
		"http, any":      {http(), verify.Proof{}},
		"http, unlisted": {http("get"), verify.Proof{}},
	} {
		if got := verify.Prove(c.r); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
