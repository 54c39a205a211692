package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// To ask the go command which files a source is made of takes ten times as long as
// to read them. So what it said is kept by all that it was asked about: where no
// byte of that has changed it would say the same again.

// question identifies what the go command is asked about: its version and settings,
// the flags, and every file of the private copy, of which it reads some. It is empty
// where the answer rests on anything else.
func (s *snapshot) question(flags []string, settings map[string]string) (string, error) {
	for flag := range strings.FieldsSeq(settings["GOFLAGS"]) {
		switch name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "="); name {
		case "overlay", "modfile", "toolexec", "pgo":
			return "", nil // files that are not copied
		}
	}
	h := sha256.New()
	field(h, digestVersion)
	for _, name := range goSettings {
		field(h, settings[name])
	}
	fields(h, flags...)
	fields(h, "in", s.relative(s.dir))
	err := filepath.WalkDir(s.temp, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fields(h, s.relative(path), string(text))
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("copy of the source: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// relative returns a path in the private folder, from there.
func (s *snapshot) relative(path string) string {
	return filepath.ToSlash(strings.TrimPrefix(path, s.temp))
}

// answers are those of the go command, in a folder.
type answers string

// find returns the digest that a question came to.
func (a answers) find(question string) (digest string, ok bool) {
	if question == "" {
		return "", false
	}
	text, err := os.ReadFile(a.file(question))
	if err != nil || len(text) != hex.EncodedLen(sha256.Size) {
		return "", false
	}
	_, err = hex.DecodeString(string(text))
	return string(text), err == nil
}

// keep remembers it, in one step. That it cannot is no error: it is asked again.
func (a answers) keep(question, digest string) {
	if question == "" {
		return
	}
	f, err := os.CreateTemp(string(a), "tmp-")
	if err != nil {
		return
	}
	_, err = f.WriteString(digest)
	if closed := f.Close(); err == nil && closed == nil {
		err = os.Rename(f.Name(), a.file(question))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

func (a answers) file(question string) string { return filepath.Join(string(a), question+".is") }
