package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
)

// What a second call with the same arguments does.
func init() {
	sdk.Register(
		define("create_automation", "F-T-", "Creates an automation under the next id (I01).", createAutomation),
		define("update_channel", "FTTT", "Sets the address of a channel and sends a test message each time (I02).", updateChannel(rand.Text)),
		define("update_channel_once", "FTTT", "Sets the address of a channel and sends a test message once (I02).", updateChannel(func() string { return "" })),
		define("delete_project", "FTFF", "Deletes a project; one that is gone is an error (I03).", deleteProject),
		define("delete_branch", "FTTF", "The same with the claim that is disputed (I03).", deleteProject),
		define("apply_once_a_day", "F-T-", "Applies a text, once in 24 hours (I07).", applyOnce),
		define("update_doc", "F-T-", "Writes a text with a fresh number of the writing (I08).", updateDoc),
		define("sequentialthinking", "TFTF", "Counts the thoughts that it was told, in its memory (I14).", think),
		define("write_file", "FTTF", "Writes a file by way of a new one (I15).", writeFile),
		define("export_component_registry", "FFFF", "Writes a file that must not be there (I17).", exportRegistry),
		define("delete_entities", "FTTF", "Deletes entities; the file is written in any case (F11).", deleteEntities),
		define("create_directory", "FFTF", "Makes a folder, which may be there (F12).", createDirectory),
	)
}

type automation struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

type nameInput struct {
	Name string `json:"name" enum:"alpha,beta"`
}

func createAutomation(_ *sdk.Call, q nameInput) (string, error) {
	var all []automation
	if err := loadJSON("automations.json", &all); err != nil {
		return "", err
	}
	return "Created.", saveJSON("automations.json", append(all, automation{len(all) + 1, q.Name}))
}

type channelInput struct {
	Channel string `json:"channel" enum:"ops,sales"`
	URL     string `json:"url"`
}

// updateChannel returns a handler whose messages have the keys that key makes;
// those without one get theirs from the host, by the arguments.
func updateChannel(key func() string) func(*sdk.Call, channelInput) (string, error) {
	return func(_ *sdk.Call, q channelInput) (string, error) {
		if err := kv.Put("channel/"+q.Channel, []byte(q.URL)); err != nil {
			return "", err
		}
		return "Updated.", outbox.Send(outbox.Message{
			Host: "hooks.example.com", Path: "/notify", ContentType: "text/plain", Body: []byte("test of " + q.Channel), Key: key(),
		})
	}
}

func deleteProject(_ *sdk.Call, q nameInput) (string, error) {
	err := os.Remove(in("projects/" + q.Name + ".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("project %s: not found", q.Name)
	}
	return "Deleted.", err
}

// applyOnce knows for a day what it applied.
func applyOnce(_ *sdk.Call, q textInput) (string, error) {
	key, now := "applied/"+q.Text, time.Now().UTC()
	old, ok, err := kv.Get(key)
	if err != nil {
		return "", err
	}
	if ok {
		last, err := time.Parse(time.RFC3339, string(old))
		if err != nil {
			return "", err
		}
		if now.Sub(last) < 24*time.Hour {
			return "It was applied.", nil
		}
	}
	if err := kv.Put(key, []byte(now.Format(time.RFC3339))); err != nil {
		return "", err
	}
	return "Applied.", add("applied.txt", q.Text)
}

type doc struct {
	Text   string `json:"text"`
	SyncID string `json:"syncId"`
}

func updateDoc(_ *sdk.Call, q textInput) (string, error) {
	return "Updated.", saveJSON("doc.json", doc{q.Text, rand.Text()})
}

// thoughts are in memory, which is not kept.
var thoughts int

func think(*sdk.Call, textInput) (string, error) {
	thoughts++
	return fmt.Sprintf("%d thoughts.", thoughts), nil
}

func writeFile(_ *sdk.Call, q textInput) (string, error) {
	return "Written.", swap("out.txt", q.Text)
}

func exportRegistry(*sdk.Call, none) (string, error) {
	f, err := os.OpenFile(in("registry.json"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	if _, err := f.WriteString("{}\n"); err != nil {
		return "", errors.Join(err, f.Close())
	}
	return "Exported.", f.Close()
}

// deleteEntities writes the file also where there is nothing to delete.
func deleteEntities(_ *sdk.Call, q entityInput) (string, error) {
	text, err := read("memory.jsonl")
	if err != nil {
		return "", err
	}
	kept := ""
	for line := range strings.Lines(text) {
		var e entity
		if json.Unmarshal([]byte(line), &e) != nil || e.Name != q.Name {
			kept += line
		}
	}
	return "Deleted.", swap("memory.jsonl", kept)
}

func createDirectory(*sdk.Call, none) (string, error) {
	return "It is there.", os.MkdirAll(in("folder/below"), 0o755)
}
