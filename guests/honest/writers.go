package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func init() {
	sdk.Register(
		sdk.Tool(
			"delete_entry", deleteEntry,
			sdk.Description("Deletes a line of the list."),
			sdk.ReadOnly(false), sdk.Destructive(true), sdk.Idempotent(true), sdk.OpenWorld(false),
		),
		sdk.Tool(
			"add_setting", addSetting,
			sdk.Description("Adds a setting that is not set yet."),
			sdk.ReadOnly(false), sdk.Destructive(false), sdk.OpenWorld(false),
		),
		sdk.Tool(
			"archive_list", archiveList,
			sdk.Description("Copies the list to the archive under a name."),
			sdk.ReadOnly(false), sdk.Destructive(false), sdk.Idempotent(true), sdk.OpenWorld(false),
		),
	)
}

type lineInput struct {
	Line string `json:"line" minLength:"1"`
}

func deleteEntry(_ *sdk.Call, q lineInput) (string, error) {
	b, err := os.ReadFile(in("list.txt"))
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	kept := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return l == q.Line })
	if len(kept) == len(lines) {
		return "There is no such line.", nil
	}
	if err := replace("list.txt", []byte(strings.Join(kept, "\n")+"\n")); err != nil {
		return "", err
	}
	return "Deleted.", nil
}

type settingInput struct {
	Key   string `json:"key" minLength:"1"`
	Value string `json:"value"`
}

// addSetting rewrites the whole file and loses nothing of it.
func addSetting(_ *sdk.Call, q settingInput) (string, error) {
	b, err := os.ReadFile(in("settings.json"))
	if err != nil {
		return "", err
	}
	settings := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &settings); err != nil {
		return "", err
	}
	if _, set := settings[q.Key]; set {
		return "", fmt.Errorf("setting %s: already set", q.Key)
	}
	if settings[q.Key], err = json.Marshal(q.Value); err != nil {
		return "", err
	}
	if b, err = json.MarshalIndent(settings, "", "  "); err != nil {
		return "", err
	}
	return "Added.", replace("settings.json", append(b, '\n'))
}

// replace writes a file beside the old one and renames it over it, so that
// nobody sees half of it.
func replace(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(in(name)), ".new-*")
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), in(name))
}

type nameInput struct {
	Name string `json:"name" enum:"spring,summer,autumn,winter"`
}

// archiveList makes one file once: a second call finds it and stops.
func archiveList(_ *sdk.Call, q nameInput) (string, error) {
	b, err := os.ReadFile(in("list.txt"))
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(in("archive/"+q.Name+".txt"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "It is archived already.", nil
	}
	if err != nil {
		return "", err
	}
	if _, err := f.Write(b); err != nil {
		return "", errors.Join(err, f.Close())
	}
	return "Archived.", f.Close()
}
