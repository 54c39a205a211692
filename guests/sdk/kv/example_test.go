//go:build !wasip1

package kv_test

import (
	"fmt"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

// A tool that only adds: it gives each order a number of its own. What it wrote is
// kept when the call ends well, and dropped when it returns an error.
func Example() {
	type input struct {
		Text string `json:"text" description:"what is ordered"`
	}
	sdk.Register(sdk.Tool("order", func(_ *sdk.Call, in input) (string, error) {
		n, err := kv.Increment("last", 1)
		if err != nil {
			return "", err
		}
		if err := kv.Put(fmt.Sprintf("order/%06d", n), []byte(in.Text)); err != nil {
			return "", err
		}
		return fmt.Sprintf("Order %d.", n), nil
	}, sdk.Destructive(false), sdk.OpenWorld(false)))

	kv.Reset() // the double of tests: a host keeps the keys of each caller by itself
	fmt.Printf("%s\n", sdk.Run([]byte(`{"tool":"order","arguments":{"text":"tea"}}`)))
	fmt.Printf("%s\n", sdk.Run([]byte(`{"tool":"order","arguments":{"text":"milk"}}`)))
	orders, err := kv.Scan("order/", "order0", 0)
	for _, o := range orders {
		fmt.Printf("%s = %s\n", o.Key, o.Value)
	}
	fmt.Println(err)
	// Output:
	// {"content":[{"type":"text","text":"Order 1."}]}
	// {"content":[{"type":"text","text":"Order 2."}]}
	// order/000001 = tea
	// order/000002 = milk
	// <nil>
}

// All keys with a prefix, page by page: the next page begins right behind the last
// key of the one before.
func ExampleScan() {
	kv.Reset()
	for _, key := range []string{"note/a", "note/b", "note/c", "other"} {
		if err := kv.Put(key, nil); err != nil {
			fmt.Println(err)
		}
	}
	from, to := "note/", "note0" // '0' is the byte after '/'
	for {
		page, err := kv.Scan(from, to, 2)
		if err != nil || len(page) == 0 {
			fmt.Println(err)
			return
		}
		for _, e := range page {
			fmt.Println(e.Key)
		}
		from = page[len(page)-1].Key + "\x00"
	}
	// Output:
	// note/a
	// note/b
	// note/c
	// <nil>
}
