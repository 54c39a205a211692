package mcpserver

import "sync"

// slots bound what runs at once. Nobody waits: who finds none free is told so.
type slots struct {
	mu   sync.Mutex
	free int
}

// take takes n slots, or none.
func (s *slots) take(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < n {
		return false
	}
	s.free -= n
	return true
}

func (s *slots) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
}
