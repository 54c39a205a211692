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
)

// Writes that are declared to lose nothing.
func init() {
	sdk.Register(
		define("create_entities", "FFFF", "Adds entities and writes back the fields that it knows (F02, D06, D07).", createEntities),
		define("update_issue_body", "FFFT", "Writes another body over the one that is there (D05).", updateBody),
		define("notebook_update", "FFFT", "Writes another body and keeps the old one under history (D05).", updateBodyKeeping),
		define("attachment_upload_link", "FFFF", "Makes a link in place of the one that the key has (D15).", uploadLink),
		define("upload_link_pointer", "FFFF", "Makes a further link and points at it (D15).", uploadLinkPointer),
		define("upload_link_rows", "FFFF", "Makes a further link; the newest counts (D15).", uploadLinkRows),
		define("fetch_to_parquet", "FFTT", "Fetches the rows of a symbol up to now over what was fetched before (D10).", fetch),
		define("note_open", "FF--", "Opens a note, by writing its path over the open one (D18).", noteOpen),
	)
}

type entity struct {
	Type         string   `json:"type"`
	Name         string   `json:"name"`
	EntityType   string   `json:"entityType"`
	Observations []string `json:"observations"`
}

type entityInput struct {
	Name string `json:"name" minLength:"1"`
}

// createEntities reports its progress between reading and writing.
func createEntities(c *sdk.Call, q entityInput) (string, error) {
	text, err := read("memory.jsonl")
	if err != nil {
		return "", err
	}
	c.Progress(1, 2, "read")
	out, known := "", []entity{}
	for line := range strings.Lines(text) {
		var e entity
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == "entity" {
			known = append(known, e)
		}
	}
	for _, e := range append(known, entity{"entity", q.Name, "person", []string{}}) {
		b, err := json.Marshal(e)
		if err != nil {
			return "", err
		}
		out += string(b) + "\n"
	}
	return "Created.", swap("memory.jsonl", out)
}

type bodyInput struct {
	Body string `json:"body"`
}

func updateBody(_ *sdk.Call, q bodyInput) (string, error) {
	return "Updated.", write("issue.md", q.Body)
}

// updateBodyKeeping keeps each body under the next number.
func updateBodyKeeping(_ *sdk.Call, q bodyInput) (string, error) {
	old, err := os.ReadFile(in("issue.md"))
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(in("history"), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	entries, err := os.ReadDir(in("history"))
	if err != nil {
		return "", err
	}
	if err := write(fmt.Sprintf("history/issue-%d.md", len(entries)+1), string(old)); err != nil {
		return "", err
	}
	return updateBody(nil, q)
}

type keyInput struct {
	Key string `json:"key" enum:"k1,k2"`
}

func uploadLink(_ *sdk.Call, q keyInput) (string, error) {
	token := rand.Text()
	return token, kv.Put("link/"+q.Key, []byte(token))
}

func uploadLinkRows(_ *sdk.Call, q keyInput) (string, error) {
	_, token, err := addLink(q.Key)
	return token, err
}

// uploadLinkPointer loses no link, and says elsewhere which one counts: there the
// old value is gone.
func uploadLinkPointer(_ *sdk.Call, q keyInput) (string, error) {
	row, token, err := addLink(q.Key)
	if err != nil {
		return "", err
	}
	return token, kv.Put("active/"+q.Key, []byte(row))
}

// addLink puts a link under the next number.
func addLink(key string) (row, token string, err error) {
	rows, err := kv.Scan("row/"+key+"/", "row/"+key+"0", 1000)
	row, token = fmt.Sprintf("row/%s/%06d", key, len(rows)), rand.Text()
	if err != nil {
		return "", "", err
	}
	return row, token, kv.Put(row, []byte(token))
}

type symbolName struct {
	Symbol string `json:"symbol" enum:"AAPL,MSFT"`
}

// fetch writes a row a day since a symbol was first fetched: what the clock says
// is part of what is written. The rows of another symbol are lost.
func fetch(_ *sdk.Call, q symbolName) (string, error) {
	text, err := read("cache.csv")
	if err != nil {
		return "", err
	}
	now := time.Now().UTC()
	first, _, _ := strings.Cut(text, "\n")
	since, err := time.Parse(q.Symbol+",since,"+time.RFC3339Nano, first)
	if err != nil {
		since = now
	}
	out := q.Symbol + ",since," + since.Format(time.RFC3339Nano) + "\n"
	days := int(now.Sub(since) / (24 * time.Hour))
	for d := range days + 1 {
		out += fmt.Sprintf("%s,%d,100\n", q.Symbol, d)
	}
	return fmt.Sprintf("%d rows.", days+1), write("cache.csv", out)
}

type pathInput struct {
	Path string `json:"path" minLength:"1"`
}

func noteOpen(_ *sdk.Call, q pathInput) (string, error) {
	return "Opened.", write("active.md", q.Path)
}
