package mcpserver

import (
	"sync"

	"github.com/sandboxd/sandboxd/runtime"
)

// slots bound what runs at once. Nobody waits: who finds none free is told so.
// Where principals are told apart, none of them takes more than half.
type slots struct {
	all int

	mu   sync.Mutex
	held map[string]int // by principal
	free int
}

func newSlots(n int) *slots { return &slots{all: n, free: n, held: map[string]int{}} }

// take takes n slots for a principal, or none.
func (s *slots) take(principal string, n int) bool {
	share := s.all
	if principal != runtime.LocalPrincipal {
		share = max(1, s.all/2)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < n || s.held[principal]+n > share {
		return false
	}
	s.free -= n
	s.held[principal] += n
	return true
}

func (s *slots) give(principal string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	if s.held[principal] -= n; s.held[principal] == 0 {
		delete(s.held, principal)
	}
}
