package main

import (
	"fmt"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

func init() {
	sdk.Register(
		reader("check_inbox", "Lists packages; none is marked as read.", checkInbox),
		writer("get_package", "Shows a package. The sender can see that it was read.", hints{idempotent: true}, getPackage),
		writer("read_forwarded", "Shows a forwarded message and marks it as read.", hints{idempotent: true}, readForwarded),
	)
}

func checkInbox(*sdk.Call, none) (rows, error) {
	list, err := load("inbox.json")
	out := rows{[]record{}}
	for _, r := range list {
		out.Rows = append(out.Rows, record{"id": r["id"], "from": r["from"], "subject": r["subject"]})
	}
	return out, err
}

// getPackage leaves a read receipt where there is none: a new key, which loses
// nothing and is nothing new a second time.
func getPackage(_ *sdk.Call, q idInput) (string, error) {
	list, err := load("inbox.json")
	if err != nil {
		return "", err
	}
	r := byID(list, q.ID)
	if r == nil {
		return "", missing("package", q.ID)
	}
	key := "receipt/" + q.ID
	_, read, err := kv.Get(key)
	if err == nil && !read {
		err = kv.Put(key, []byte("read"))
	}
	return fmt.Sprintf("%s: %s\n%s", r.text("from"), r.text("subject"), r.text("body")), err
}

// readForwarded changes one word of one record, by the transition from unread to
// read.
func readForwarded(_ *sdk.Call, q idInput) (string, error) {
	list, err := load("forwarded.json")
	if err != nil {
		return "", err
	}
	r := byID(list, q.ID)
	if r == nil {
		return "", missing("message", q.ID)
	}
	return move("forwarded.json", list, r, "read", r.text("text"))
}
