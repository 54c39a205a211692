package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func init() {
	sdk.Register(
		reader("notebook_open", "Shows a page and its revision.", notebookOpen),
		writer("notebook_save", "Saves a new page.", hints{}, notebookSave),
		writer("notebook_update", "Replaces the text of a page; the old text stays in its history. Refused where the page has another revision.", hints{}, notebookUpdate),
		writer("notebook_organize", "Deletes or restores a page. A deleted page can be restored for 30 days.", hints{}, notebookOrganize),
	)
}

type pageInput struct {
	Page string `json:"page" description:"the page's name: a-z, 0-9 and -" minLength:"1" maxLength:"40"`
}

// name returns the file of the page below a folder. A name is one word, so it
// leads nowhere else, and it ends no revision.
func (q pageInput) name(folder string) (string, error) {
	if strings.Trim(q.Page, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", fmt.Errorf("page %q: want a-z, 0-9 and -", q.Page)
	}
	return folder + "/" + q.Page + ".md", nil
}

func historyOf(page string, revision int) string {
	return fmt.Sprintf("history/%s.%d.md", page, revision)
}

// open returns the text of a page and its revision: one more than it has entries
// in the history.
func (q pageInput) open() (text []byte, revision int, err error) {
	name, err := q.name("notebook")
	if err != nil {
		return nil, 0, err
	}
	if text, err = os.ReadFile(in(name)); errors.Is(err, fs.ErrNotExist) {
		return nil, 0, missing("page", q.Page)
	}
	for revision = 1; err == nil; revision++ {
		if _, e := os.Stat(in(historyOf(q.Page, revision))); errors.Is(e, fs.ErrNotExist) {
			return text, revision, nil
		} else if e != nil {
			err = e
		}
	}
	return nil, 0, err
}

type pageOutput struct {
	Text     string `json:"text"`
	Revision int    `json:"revision"`
}

func notebookOpen(_ *sdk.Call, q pageInput) (pageOutput, error) {
	text, revision, err := q.open()
	return pageOutput{string(text), revision}, err
}

type saveInput struct {
	pageInput
	Text string `json:"text"`
}

func notebookSave(_ *sdk.Call, q saveInput) (string, error) {
	name, err := q.name("notebook")
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(in(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("page %s: is there", q.Page)
	}
	if err != nil {
		return "", err
	}
	if _, err := f.WriteString(q.Text); err != nil {
		return "", errors.Join(err, f.Close())
	}
	return "Saved.", f.Close()
}

type updateInput struct {
	saveInput
	Revision int `json:"revision" description:"the revision that the new text replaces" minimum:"1"`
}

// notebookUpdate adds the old bytes to the history in the commit that replaces
// them.
func notebookUpdate(_ *sdk.Call, q updateInput) (string, error) {
	old, revision, err := q.open()
	if err != nil {
		return "", err
	}
	if revision != q.Revision {
		return "", fmt.Errorf("page %s: at revision %d, not %d: nothing was replaced", q.Page, revision, q.Revision)
	}
	if string(old) == q.Text {
		return "It has that text.", nil
	}
	if err := os.WriteFile(in(historyOf(q.Page, revision)), old, 0o644); err != nil {
		return "", err
	}
	name, err := q.name("notebook")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Revision %d.", revision+1), os.WriteFile(in(name), []byte(q.Text), 0o644)
}

type organizeInput struct {
	pageInput
	Action string `json:"action" enum:"delete,restore"`
}

// notebookOrganize moves a page out of the notebook or back: it takes a name away,
// which is a loss that the host can undo for the time requested.
func notebookOrganize(_ *sdk.Call, q organizeInput) (string, error) {
	page, err := q.name("notebook")
	if err != nil {
		return "", err
	}
	trash, err := q.name("trash")
	if err != nil {
		return "", err
	}
	from, to, answer := page, trash, "Deleted."
	if q.Action == "restore" {
		from, to, answer = trash, page, "Restored."
	}
	if _, err := os.Stat(in(to)); err == nil {
		return "", fmt.Errorf("page %s: there is another one in its place", q.Page)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.Mkdir(in("trash"), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := os.Rename(in(from), in(to)); errors.Is(err, fs.ErrNotExist) {
		return "", missing("page", q.Page)
	} else if err != nil {
		return "", err
	}
	return answer, nil
}
