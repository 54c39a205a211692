//go:build !wasip1

package outbox

import (
	"errors"
	"strings"
	"testing"
)

func TestSend(t *testing.T) {
	defer Reset()
	Reset()
	body := []byte("body")
	for range 2 { // with a key of its own once, without one each time
		for _, key := range []string{"k", ""} {
			if err := Send(Message{Host: "h.example", Body: body, Key: key}); err != nil {
				t.Error(err)
			}
		}
	}
	copy(body, "gone")
	sent := Sent()
	if len(sent) != 3 || sent[0].Method != "POST" || sent[0].Path != "/" || string(sent[0].Body) != "body" {
		t.Errorf("sent %+v", sent)
	}
	if err := Send(Message{Host: "h.example", Path: "/#"}); !errors.Is(err, ErrMessage) {
		t.Errorf("got %v", err)
	}
	if err := Send(Message{Host: "h.example", Body: make([]byte, MaxBody+1)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if Reset(); len(Sent()) != 0 {
		t.Error("a reset forgets nothing")
	}
}

func TestErrnoNamesItsNumber(t *testing.T) {
	if text := Errno(28).Error(); !strings.Contains(text, "28") {
		t.Errorf("%q", text)
	}
}
