// Command guest does lists of operations on files, keys and messages, each list
// in one call, and answers with what each operation saw.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
	"github.com/sandboxd/sandboxd/guests/sdk/kv"
	"github.com/sandboxd/sandboxd/guests/sdk/outbox"
)

// operation is one step of a call. Names of files are absolute.
type operation struct {
	Do   string `json:"do"`
	Name string `json:"name" default:""` // of the file, the key or the message
	Text string `json:"text" default:""`
	To   string `json:"to" default:""`
	N    int    `json:"n" default:"0"`
}

type input struct {
	Operations []operation `json:"operations"`
}

func init() {
	sdk.Register(
		sdk.Tool(
			"do", do, sdk.Description("Does operations in their order."),
			sdk.ReadOnly(false), sdk.Destructive(true), sdk.Idempotent(false), sdk.OpenWorld(true),
		),
		sdk.Tool(
			"look", do, sdk.Description("Does operations that only read."),
			sdk.ReadOnly(true), sdk.Destructive(false), sdk.OpenWorld(false),
		),
	)
}

func main() { sdk.Main() }

func do(c *sdk.Call, in input) (string, error) {
	saw := make([]string, len(in.Operations))
	for i, o := range in.Operations {
		var err error
		if saw[i], err = o.run(c); err != nil {
			return "", fmt.Errorf("operation %d, %s: %w", i, o.Do, err)
		}
	}
	text, err := json.Marshal(saw)
	return string(text), err
}

var errAsked = errors.New("as it was asked to")

// run does one operation and returns what it saw: "=" and what is there, or "-"
// for nothing.
func (o operation) run(c *sdk.Call) (string, error) {
	switch o.Do {
	case "say":
		return o.Text, nil
	case "fail":
		return "", errAsked
	case "wait": // the caller may do something before it goes on
		c.Log("info", "waiting")
		return "", nil
	case "send":
		return "", outbox.Send(outbox.Message{Host: "hooks.example.com", Key: o.Name, Body: []byte(o.Text)})
	case "get", "put", "delete", "append", "increment", "scan":
		return o.key()
	}
	return o.file()
}

func (o operation) key() (string, error) {
	switch o.Do {
	case "put":
		return "", kv.Put(o.Name, []byte(o.Text))
	case "delete":
		return "", kv.Delete(o.Name)
	case "append":
		return "", kv.Append(o.Name, []byte(o.Text))
	case "increment":
		n, err := kv.Increment(o.Name, int64(o.N))
		return strconv.FormatInt(n, 10), err
	case "scan":
		list, err := kv.Scan(o.Name, o.To, o.N)
		var b strings.Builder
		for _, e := range list {
			fmt.Fprintf(&b, "%s=%s\n", e.Key, e.Value)
		}
		return b.String(), err
	}
	v, ok, err := kv.Get(o.Name)
	if !ok {
		return "-", err
	}
	return "=" + string(v), err
}

func (o operation) file() (string, error) {
	switch o.Do {
	case "write":
		return "", o.save(o.Name, []byte(o.Text), os.O_TRUNC)
	case "grow":
		return "", o.save(o.Name, []byte(o.Text), os.O_APPEND)
	case "fill": // N bytes that say Text
		return "", o.save(o.Name, bytes.Repeat([]byte(o.Text), o.N/len(o.Text)), os.O_TRUNC)
	case "copy":
		b, err := os.ReadFile(o.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return "-", nil
		}
		return "=" + string(b), errors.Join(err, o.save(o.To, b, os.O_TRUNC))
	case "remove":
		err := os.Remove(o.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return "-", nil
		}
		return "=", err
	case "list":
		list, err := os.ReadDir(o.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return "-", nil
		}
		names := []string{}
		for _, e := range list {
			names = append(names, e.Name())
		}
		return "=" + strings.Join(names, " "), err
	case "read", "digest":
		b, err := os.ReadFile(o.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return "-", nil
		}
		if o.Do == "digest" {
			sum := sha256.Sum256(b)
			b = []byte(hex.EncodeToString(sum[:]))
		}
		return "=" + string(b), err
	}
	return "", fmt.Errorf("operation %q: %w", o.Do, errors.ErrUnsupported)
}

func (o operation) save(name string, b []byte, how int) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|how, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
