package volume

import (
	"errors"
	"testing"
)

// TestComparingEnds: contents are compared for as long as the call has time. What
// costs a guest nothing, a file of holes, may be of any size.
func TestComparingEnds(t *testing.T) {
	over := errors.New("time is over")
	host, _ := planted(t, map[string]string{"f": "0123456789"})
	left := true
	o := New(host, Options{Budget: &Budget{Bytes: 1 << 20, Files: 10}, Live: func() error {
		if left {
			return nil
		}
		return over
	}})
	defer o.Close()
	p, err := o.Walk(o.Root(), "f", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(o.Truncate(p.Node, 0), o.Truncate(p.Node, 10)); err != nil {
		t.Fatal(err)
	}
	left = false
	if _, err := o.Change(); !errors.Is(err, over) {
		t.Errorf("change without time: %v", err)
	}
	left = true
	if c, err := o.Change(); err != nil || len(c.Steps) != 1 {
		t.Errorf("change with time: %+v, %v", c, err)
	}
}
