package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/wasi"
)

func init() {
	sdk.Register(
		reader("sort_lines", "Shows the lines of the list in order.", sortLines),
		reader("ensure_folder", "Lists the archive, which must be there.", ensureFolder),
		reader("forget_cache", "Shows the list as it is, not as it was cached.", forgetCache),
		reader("edit_or_view", "Shows the list, from an editor that opens files for writing.", editOrView),
		reader("open_database", "Shows the first record of the database.", openDatabase),
		reader("lock_state", "Tells whether somebody holds the lock.", lockState),
		reader("follow_log", "Shows the end of the log.", followLog),
		reader("count_lines", "Counts the lines of all files and says so in its log.", countLines),
		reader("read_current", "Shows the current version, which is a link.", readCurrent),
		reader("settle_name", "Shows the list under its final name.", settleName),
		reader("tidy_archive", "Lists the archive; empty folders are not listed.", tidyArchive),
		reader("raw_make_folder", "Tells whether the archive is a folder.", rawMakeFolder),
	)
}

// sortLines sorts in a file of its own scratch, as programs do that were
// written for more than fits in memory.
func sortLines(*sdk.Call, none) (string, error) {
	b, err := os.ReadFile(in("list.txt"))
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(scratch, "sort-*")
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	slices.Sort(lines)
	if _, err := f.WriteString(strings.Join(lines, "\n")); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	sorted, err := io.ReadAll(f)
	return string(sorted), err
}

// ensureFolder asks for a folder that is there.
func ensureFolder(*sdk.Call, none) (string, error) {
	if err := os.Mkdir(in("archive"), 0o755); !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("archive: want it to be there, got %v", err)
	}
	entries, err := os.ReadDir(in("archive"))
	return fmt.Sprintf("%d entries.", len(entries)), err
}

// forgetCache removes a file that is not there.
func forgetCache(*sdk.Call, none) (string, error) {
	if err := os.Remove(in("list.cache")); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("list.cache: want none, got %v", err)
	}
	b, err := os.ReadFile(in("list.txt"))
	return string(b), err
}

// editOrView opens for reading and writing and makes do with reading.
func editOrView(c *sdk.Call, _ none) (string, error) {
	return view(c, in("list.txt"), os.O_RDWR)
}

// openDatabase asks for the file to be made as well, as database libraries do
// on every open.
func openDatabase(c *sdk.Call, _ none) (string, error) {
	s, err := view(c, in("records.db"), os.O_RDWR|os.O_CREATE)
	first, _, _ := strings.Cut(s, "\n")
	return first, err
}

func view(c *sdk.Call, name string, flag int) (string, error) {
	f, err := os.OpenFile(name, flag, 0o644)
	if err != nil {
		c.Logf("%v: reading only", err)
		if f, err = os.Open(name); err != nil {
			return "", err
		}
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

// lockState tries to take a lock that is taken.
func lockState(*sdk.Call, none) (string, error) {
	_, err := os.OpenFile(in("lock"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("lock: want it taken, got %v", err)
	}
	return "The lock is held.", nil
}

// followLog opens with O_APPEND, which says nothing on a read-only open.
func followLog(*sdk.Call, none) (string, error) {
	f, err := os.OpenFile(in("log.txt"), os.O_RDONLY|os.O_APPEND, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1], err
}

func countLines(c *sdk.Call, _ none) (string, error) {
	total := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		n := strings.Count(string(b), "\n")
		c.Logf("%s: %d lines", name, n)
		total += n
		return err
	})
	return fmt.Sprintf("%d lines.", total), err
}

// readCurrent reads through a link that stays inside the volume.
func readCurrent(*sdk.Call, none) (string, error) {
	b, err := os.ReadFile(in("current"))
	return string(b), err
}

// settleName renames a file onto itself.
func settleName(*sdk.Call, none) (string, error) {
	if err := os.Rename(in("list.txt"), in("list.txt")); err != nil {
		return "", err
	}
	b, err := os.ReadFile(in("list.txt"))
	return string(b), err
}

// tidyArchive tries to remove folders and relies on the error of full ones.
func tidyArchive(*sdk.Call, none) (string, error) {
	entries, err := os.ReadDir(in("archive"))
	if err != nil {
		return "", err
	}
	names := []string{}
	for _, e := range entries {
		if e.IsDir() && os.Remove(in("archive/"+e.Name())) == nil {
			continue
		}
		names = append(names, e.Name())
	}
	return strings.Join(names, "\n"), nil
}

// rawMakeFolder makes a folder that is there, and one over a file.
func rawMakeFolder(*sdk.Call, none) (string, error) {
	dir, err := wasi.Dir("/data")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"archive", "./archive/", "list.txt"} {
		if e := wasi.Mkdir(dir, name); e != wasi.EEXIST {
			return "", fmt.Errorf("%s: got %v, want %v", name, e, wasi.EEXIST)
		}
	}
	return "It is there.", nil
}
