package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

// Tools that say that a second call changes nothing further, and keep it.
func init() {
	repeater := func(destructive bool) []sdk.Option {
		return []sdk.Option{sdk.ReadOnly(false), sdk.Destructive(destructive), sdk.Idempotent(true), sdk.OpenWorld(false)}
	}
	sdk.Register(
		sdk.Tool("write_file", writeFile, append(repeater(true), sdk.Description("Writes a page, in place of the one that may be there."))...),
		sdk.Tool("create_directory", createDirectory, append(repeater(false), sdk.Description("Makes a folder of pages, which may be there."))...),
		sdk.Tool("upsert_contact", upsertContact, append(repeater(true), sdk.Description("Saves the phone number of a contact."))...),
		sdk.Tool("daily_digest", dailyDigest, append(repeater(true), sdk.Description("Adds a line to the digest, once in 24 hours for each topic."))...),
	)
}

type pageInput struct {
	Page string `json:"page" enum:"home,about,news"`
	Text string `json:"text"`
}

// writeFile makes a new file each time: another inode and other times, and the
// same bytes under the same name.
func writeFile(_ *sdk.Call, q pageInput) (string, error) {
	return "Written.", replace(q.Page+".md", []byte(q.Text))
}

type folderInput struct {
	Folder string `json:"folder" enum:"drafts,pages"`
}

func createDirectory(_ *sdk.Call, q folderInput) (string, error) {
	return "It is there.", os.MkdirAll(in("site/"+q.Folder), 0o755)
}

type contactInput struct {
	Name  string `json:"name" minLength:"1" maxLength:"80"`
	Phone string `json:"phone"`
}

func upsertContact(_ *sdk.Call, q contactInput) (string, error) {
	return "Saved.", kv.Put("contact/"+q.Name, []byte(q.Phone))
}

type topicInput struct {
	Topic string `json:"topic" minLength:"1" maxLength:"80"`
}

// dailyDigest keeps its claim for a day: what it did then it does again after
// that.
func dailyDigest(_ *sdk.Call, q topicInput) (string, error) {
	key, now := "digest/"+q.Topic, time.Now().UTC()
	text, ok, err := kv.Get(key)
	if err != nil {
		return "", err
	}
	if ok {
		last, err := time.Parse(time.RFC3339, string(text))
		if err != nil {
			return "", fmt.Errorf("digest of %s: %w", q.Topic, err)
		}
		if now.Sub(last) < 24*time.Hour {
			return "It was in the digest today.", nil
		}
	}
	if err := kv.Put(key, []byte(now.Format(time.RFC3339))); err != nil {
		return "", err
	}
	b, err := os.ReadFile(in("digest.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return "Added.", replace("digest.txt", append(b, q.Topic+"\n"...))
}
