package runtime

import "testing"

func TestLinearMemoryKeepsToItsLimit(t *testing.T) {
	m := &linearMemory{limit: 3 << 16}
	b := m.Reallocate(1 << 16)
	b[0], b[1<<16-1] = 1, 2
	if b = m.Reallocate(3 << 16); len(b) != 3<<16 || b[0] != 1 || b[1<<16-1] != 2 || b[1<<16] != 0 {
		t.Errorf("grown memory: %d bytes", len(b))
	}
	if m.refused {
		t.Error("refused within the limit")
	}
	if m.Reallocate(3<<16+1) != nil || !m.refused {
		t.Error("grew beyond the limit")
	}
}
