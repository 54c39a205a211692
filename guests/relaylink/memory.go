package main

import (
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

func init() {
	sdk.Register(
		reader("memory_search", "Lists the memories that contain a text.", memorySearch),
		writer("memory_add", "Adds a memory, in place of another one where replaces is given.", hints{destructive: true}, memoryAdd),
		writer("memory_forget", "Deletes a memory.", hints{destructive: true, idempotent: true}, memoryForget),
	)
}

func memoryKey(id int64) string { return fmt.Sprintf("memory/%012d", id) }

type memoryInput struct {
	Text     string `json:"text" minLength:"1"`
	Replaces *int64 `json:"replaces,omitempty" description:"the id of a memory that is deleted"`
}

// memoryAdd takes its ids from a number that only grows, so none is given twice.
func memoryAdd(_ *sdk.Call, q memoryInput) (string, error) {
	if q.Replaces != nil {
		if _, ok, err := kv.Get(memoryKey(*q.Replaces)); err != nil {
			return "", err
		} else if !ok {
			return "", missing("memory", fmt.Sprint(*q.Replaces))
		}
		if err := kv.Delete(memoryKey(*q.Replaces)); err != nil {
			return "", err
		}
	}
	id, err := kv.Increment("memories", 1)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Memory %d.", id), kv.Put(memoryKey(id), []byte(q.Text))
}

type forgetInput struct {
	ID int64 `json:"id" minimum:"1"`
}

func memoryForget(_ *sdk.Call, q forgetInput) (string, error) {
	return "It is gone.", kv.Delete(memoryKey(q.ID))
}

type searchInput struct {
	Text string `json:"text"`
}

func memorySearch(_ *sdk.Call, q searchInput) (string, error) {
	list, err := kv.Scan("memory/", "memory0", 0)
	var found strings.Builder
	for _, e := range list {
		if s := string(e.Value); strings.Contains(s, q.Text) {
			fmt.Fprintf(&found, "[%s] %s\n", strings.TrimLeft(e.Key[len("memory/"):], "0"), s)
		}
	}
	return found.String(), err
}
