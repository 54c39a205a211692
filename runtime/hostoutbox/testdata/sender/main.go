// Sender is a guest that sends and says what it was told.
package main

import (
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
)

func main() {
	m := outbox.Message{Host: "h.example", Path: "/x", ContentType: "a/b", Body: []byte("body"), Key: "k"}
	fmt.Println(outbox.Send(m), outbox.Send(m), outbox.Send(outbox.Message{Host: "h.example", Method: "PUT"}))
	m.Body = make([]byte, outbox.MaxBody+1)
	fmt.Println(errors.Is(outbox.Send(m), outbox.ErrTooLarge))
	for _, m := range []outbox.Message{
		{}, {Host: "h.example", Method: "GET"}, {Host: "h.example", Path: "x"}, {Host: "H.example"},
		{Host: "h.example", Key: "a b"}, {Host: "h.example", ContentType: "a\nb"},
	} {
		fmt.Print(errors.Is(outbox.Send(m), outbox.ErrMessage), " ")
	}
}
