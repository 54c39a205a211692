package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
)

// Reads that write.
func init() {
	sdk.Register(
		define("replace_symbol", "T---", "Replaces the body of a symbol (R01).", replaceSymbol),
		define("recall", "TF-F", "Recalls memories; every tool records its query (R03).", recall(record)),
		define("recall_quietly", "TF-F", "Recalls memories and records nothing (R03).", recall(func(*sdk.Call, string) error { return nil })),
		define("remember", "FF-F", "Adds a memory; every tool records its query (R03).", remember),
		define("open_in_ui", "T---", "Shows a note, or makes it where it may be missing (R06).", openInUI),
		define("open_if_there", "T---", "Looks whether a note is there and then opens it in a way that makes it (R07).", openIfThere),
		define("remove_page", "FTTF", "Removes a note (R07).", removePage),
		define("run_experiment", "T---", "Runs an experiment and logs it (R11).", runExperiment),
		define("browser_pdf_save", "TF-T", "Saves the page in the workspace (R13).", pdfSave),
		define("browser_take_screenshot", "TF-T", "Takes a picture by way of scratch (R13).", takeScreenshot),
		define("download_paper", "T--T", "Keeps a paper that list_papers then lists (R14).", downloadPaper),
		define("list_papers", "T--T", "Lists the papers that were kept (R14).", listPapers),
		define("memory_read_page", "T---", "Shows a page and counts the reading (R25).", readPage),
		define("touch_recall", "T---", "Shows a page and notes when it was read (R26).", touchRecall),
		define("get_package", "FFTF", "Shows a package and leaves a read receipt (R29).", getPackage),
		define("get_package_quietly", "TFTF", "Shows a package and leaves a read receipt that it does not declare (R29).", getPackage),
	)
}

type symbolInput struct {
	Symbol string `json:"symbol" minLength:"1"`
	Body   string `json:"body"`
}

func replaceSymbol(_ *sdk.Call, q symbolInput) (string, error) {
	text, err := read("src.txt")
	if err != nil {
		return "", err
	}
	return "Replaced.", write("src.txt", strings.Replace(text, q.Symbol+" {}", q.Symbol+" {"+q.Body+"}", 1))
}

type queryInput struct {
	Query string `json:"query"`
}

// record is what all handlers share: the write is in none of them.
func record(c *sdk.Call, query string) error {
	line, err := json.Marshal(map[string]string{"tool": c.Tool, "query": query})
	if err != nil {
		return err
	}
	return add("memory.jsonl", string(line))
}

func recall(record func(*sdk.Call, string) error) func(*sdk.Call, queryInput) (string, error) {
	return func(c *sdk.Call, q queryInput) (string, error) {
		if err := record(c, q.Query); err != nil {
			return "", err
		}
		text, err := read("memory.jsonl")
		n := 0
		for line := range strings.Lines(text) {
			if strings.Contains(line, q.Query) {
				n++
			}
		}
		return fmt.Sprintf("%d memories.", n), err
	}
}

func remember(c *sdk.Call, q queryInput) (string, error) {
	return "Remembered.", record(c, q.Query)
}

type noteInput struct {
	Note          string `json:"note" enum:"plan,new"`
	FailIfMissing bool   `json:"fail_if_missing" default:"true"`
}

func openInUI(_ *sdk.Call, q noteInput) (string, error) {
	flags := os.O_RDONLY
	if !q.FailIfMissing {
		flags |= os.O_CREATE
	}
	return show("vault/"+q.Note+".md", flags)
}

func show(name string, flags int) (string, error) {
	f, err := os.OpenFile(in(name), flags, 0o644)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

// openIfThere reports its progress between the look and the opening: the place
// where somebody else may remove the note.
func openIfThere(c *sdk.Call, q noteInput) (string, error) {
	name := "vault/" + q.Note + ".md"
	_, err := os.Stat(in(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "There is no such note.", nil
	}
	if err != nil {
		return "", err
	}
	c.Progress(1, 2, "looked")
	return show(name, os.O_RDONLY|os.O_CREATE)
}

func removePage(_ *sdk.Call, q noteInput) (string, error) {
	if err := os.Remove(in("vault/" + q.Note + ".md")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return "Removed.", nil
}

func runExperiment(*sdk.Call, none) (string, error) {
	return "The result is 42.", add("experiments.jsonl", `{"result":42}`)
}

const page = "%PDF-1.7 a page"

func pdfSave(*sdk.Call, none) (string, error) {
	return "Saved page.pdf.", write("page.pdf", page)
}

// takeScreenshot writes to scratch and answers with the bytes.
func takeScreenshot(*sdk.Call, none) (string, error) {
	name := filepath.Join(scratch, fmt.Sprintf("page-%d.png", time.Now().UnixNano()))
	if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
		return "", err
	}
	b, err := os.ReadFile(name)
	return string(b), err
}

type paperInput struct {
	ID string `json:"id" enum:"2401-1,2401-2"`
}

// downloadPaper leaves out the network: what it keeps is what counts.
func downloadPaper(_ *sdk.Call, q paperInput) (string, error) {
	return "Kept.", write("store/"+q.ID+".md", "# Paper "+q.ID+"\n")
}

func listPapers(*sdk.Call, none) (string, error) {
	entries, err := os.ReadDir(in("store"))
	return fmt.Sprintf("%d papers.", len(entries)), err
}

type pageInput struct {
	Page string `json:"page" enum:"home,about"`
}

// readPage counts in a key by which later answers are ranked.
func readPage(_ *sdk.Call, q pageInput) (string, error) {
	n, err := kv.Increment("hits/"+q.Page, 1)
	return fmt.Sprintf("%s, read %d times.", q.Page, n), err
}

func touchRecall(_ *sdk.Call, q pageInput) (string, error) {
	now := time.Now().UTC().Format(time.RFC3339)
	return q.Page, kv.Put("last_accessed/"+q.Page, []byte(now))
}

type packageInput struct {
	ID string `json:"id" enum:"p1,p2"`
}

// getPackage inserts a receipt where there is none.
func getPackage(_ *sdk.Call, q packageInput) (string, error) {
	key := "receipts/" + q.ID
	if _, ok, err := kv.Get(key); err != nil || ok {
		return "Package " + q.ID, err
	}
	return "Package " + q.ID, kv.Put(key, []byte("read"))
}
