// Command goguest does with files what Go programs do, through package os
// only. It is built for wasip1 by a test.
//
// Its first argument says what it does. What it finds wrong goes to standard
// error, with exit status 1.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	programs := map[string]func() error{
		"read":    read,
		"write":   write,
		"env":     env,
		"sleep":   sleep,
		"refused": refused,
	}
	if err := programs[os.Args[1]](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// read looks at /data in every way that changes nothing.
func read() error {
	b, err := os.ReadFile("/data/file")
	if err != nil || string(b) != "old content\n" {
		return fmt.Errorf("read %q: %w", b, err)
	}
	if b, err = os.ReadFile("file"); err != nil || string(b) != "old content\n" {
		return fmt.Errorf("read relative %q: %w", b, err)
	}
	list, err := os.ReadDir("/data/dir")
	if err != nil {
		return err
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name()+" "+e.Type().String())
	}
	if got := strings.Join(names, ","); got != "inner ----------,sub d---------,up L---------" {
		return fmt.Errorf("names %s", got)
	}
	var walked int
	err = filepath.WalkDir("/data", func(string, fs.DirEntry, error) error { walked++; return nil })
	if err != nil || walked < 12 {
		return fmt.Errorf("walked %d: %w", walked, err)
	}
	if matches, err := fs.Glob(os.DirFS("/data"), "d*/inner"); err != nil || !slices.Equal(matches, []string{"dir/inner", "dirlink/inner"}) {
		return fmt.Errorf("glob %v: %w", matches, err)
	}
	return errors.Join(stat(), seek(), root())
}

func stat() error {
	i, err := os.Stat("/data/link")
	if err != nil || i.Size() != 12 || !i.Mode().IsRegular() || i.ModTime().Year() < 2020 {
		return fmt.Errorf("stat %v: %w", i, err)
	}
	j, err := os.Lstat("/data/link")
	if err != nil || j.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("lstat %v: %w", j, err)
	}
	k, err := os.Stat("/data/file")
	if err != nil || !os.SameFile(i, k) || os.SameFile(i, j) {
		return fmt.Errorf("same file %v: %w", k, err)
	}
	if target, err := os.Readlink("/data/link"); err != nil || target != "file" {
		return fmt.Errorf("readlink %q: %w", target, err)
	}
	if _, err := os.Stat("/data/new"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stat of nothing: %w", err)
	}
	return nil
}

func seek() error {
	f, err := os.Open("/data/file")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(-8, io.SeekEnd); err != nil {
		return err
	}
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil || line != "content\n" {
		return fmt.Errorf("read %q: %w", line, err)
	}
	b := make([]byte, 3)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "old" {
		return fmt.Errorf("read %q: %w", b, err)
	}
	if _, err := f.ReadAt(b, 10); !errors.Is(err, io.EOF) {
		return fmt.Errorf("read beyond the end: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	all, err := io.ReadAll(f)
	if err != nil || len(all) != 12 {
		return fmt.Errorf("read %q: %w", all, err)
	}
	d, err := os.Open("/data/dir")
	if err != nil {
		return err
	}
	defer d.Close()
	for range 2 {
		names, err := d.Readdirnames(-1)
		if err != nil || len(names) != 3 {
			return fmt.Errorf("names %v: %w", names, err)
		}
		if _, err := d.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return nil
}

func root() error {
	r, err := os.OpenRoot("/data")
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := r.ReadFile("dir/inner")
	if err != nil || string(b) != "inner\n" {
		return fmt.Errorf("read in root %q: %w", b, err)
	}
	if _, err := r.ReadFile("../secret"); err == nil {
		return errors.New("root left")
	}
	return nil
}

// write changes files in /data and in /tmp.
func write() error {
	for _, dir := range []string{"/data", os.TempDir()} {
		if err := writeIn(dir); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return os.WriteFile("/data/file", []byte("new content\n"), 0o600)
}

func writeIn(dir string) error {
	below := filepath.Join(dir, "made", "below")
	if err := os.MkdirAll(below, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(below, 0o755); err != nil {
		return err
	}
	name := filepath.Join(below, "f")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, step := range []func() error{
		func() error { _, err := f.WriteString("0123456789"); return err },
		func() error { _, err := f.WriteAt([]byte("ab"), 4); return err },
		func() error { return f.Truncate(8) },
		f.Sync,
		func() error { return os.Chtimes(name, time.Unix(1e9, 0), time.Unix(2e9, 0)) },
		func() error { return os.Rename(name, filepath.Join(dir, "made", "g")) },
		func() error { return os.Remove(below) },
		func() error { return appendTo(filepath.Join(dir, "made", "g")) },
		func() error { return os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(filepath.Join(dir, "made"))) },
		func() error { return os.RemoveAll(filepath.Join(dir, "copy")) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	t, err := os.CreateTemp(filepath.Join(dir, "made"), "x*")
	if err != nil {
		return err
	}
	if err := errors.Join(t.Close(), os.Remove(t.Name())); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "made", "g"))
	if err != nil || string(b) != "0123ab67more" {
		return fmt.Errorf("content %q: %w", b, err)
	}
	return nil
}

func appendTo(name string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("more")
	return errors.Join(err, f.Close())
}

// refused tries what an honest read-only program may try in vain.
func refused() error {
	for what, err := range map[string]error{
		"open for reading and writing": func() error { _, err := os.OpenFile("/data/file", os.O_RDWR, 0); return err }(),
		"symlink":                      os.Symlink("file", "/data/newlink"),
		"link":                         os.Link("/data/file", "/data/newlink"),
		"mkdir of what exists":         os.Mkdir("/data/dir", 0o755),
		"remove of nothing":            os.Remove("/data/new"),
		"read through a link out":      func() error { _, err := os.ReadFile("/data/out"); return err }(),
		"read outside":                 func() error { _, err := os.ReadFile("/etc/passwd"); return err }(),
		"readlink of a link out":       func() error { _, err := os.Readlink("/data/out"); return err }(),
	} {
		if err == nil {
			return fmt.Errorf("%s: no error", what)
		}
	}
	return os.MkdirAll("/data/dir/sub", 0o755)
}

// env copies standard input behind what it was started with.
func env() error {
	fmt.Println(os.Args[1:], os.Getenv("KEY"), os.Environ())
	b, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(b)
	return err
}

// sleep uses timers and goroutines.
func sleep() error {
	c := make(chan string)
	go func() { time.Sleep(20 * time.Millisecond); c <- "slept" }()
	select {
	case s := <-c:
		fmt.Println(s)
	case <-time.After(10 * time.Second):
		return errors.New("no end of sleep")
	}
	return nil
}
