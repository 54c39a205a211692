package host

import (
	"testing"

	"github.com/sandboxd/sandboxd/internal/config"
)

// Where messages go is said by package and host, and anew each time.
func TestRoutes(t *testing.T) {
	var r routes
	if s, served := r.sink("a", "h"); s != nil || served {
		t.Errorf("nothing is served: %v, %t", s, served)
	}
	r.set("a", map[string]config.Sink{"h": {File: "/one"}})
	r.set("b", map[string]config.Sink{"h": {File: "/two"}})
	r.set("c", map[string]config.Sink{"g": {File: "/one"}})
	a, served := r.sink("a", "h")
	b, _ := r.sink("b", "h")
	c, _ := r.sink("c", "g")
	if !served || a == nil || b == nil || a == b || a != c {
		t.Errorf("%p, %p and %p: want one file a path", a, b, c)
	}
	if s, served := r.sink("a", "g"); s != nil || !served {
		t.Errorf("no file for the host: %v, %t", s, served)
	}
	r.set("a", nil)
	if s, served := r.sink("a", "h"); s != nil || !served {
		t.Errorf("taken away: %v, %t", s, served)
	}
	r.remove("b")
	if s, served := r.sink("b", "h"); s != nil || served {
		t.Errorf("served no more: %v, %t", s, served)
	}
}
