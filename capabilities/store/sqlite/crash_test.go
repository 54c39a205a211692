package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

var crashRounds = flag.Int("crash-rounds", 20, "how often a process is killed while it commits")

// crashFolder is where the process that is to be killed commits, and crashRound
// tells its commits from those of others.
const crashFolder, crashRound = "STORE_CRASH_FOLDER", "STORE_CRASH_ROUND"

func TestMain(m *testing.M) {
	if folder := os.Getenv(crashFolder); folder != "" {
		if err := commitUntilKilled(folder, os.Getenv(crashRound)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// commitUntilKilled commits from several sides and says what was answered.
func commitUntilKilled(folder, round string) error {
	s, err := Open(context.Background(), Options{Folder: folder})
	if err != nil {
		return err
	}
	errs := make(chan error)
	var out sync.Mutex
	for c := range 4 {
		go func() {
			for i := 0; ; i++ {
				if err := crashCommit(s, fmt.Sprint(round, " ", c, " ", i), &out); err != nil {
					errs <- err
				}
			}
		}()
	}
	go func() {
		for {
			if err := s.Prune(context.Background(), store.Prune{Now: time.Now().Add(2 * time.Hour)}); err != nil {
				errs <- err
			}
		}
	}()
	return <-errs
}

func crashCommit(s *Store, id string, out *sync.Mutex) error {
	blob, err := s.PutBlob(context.Background(), []byte("blob "+id))
	if err != nil {
		return err
	}
	c := mark(id)
	c.Writes[0].Blobs = []store.Digest{blob}
	if _, err := s.Commit(context.Background(), c); err != nil {
		return err
	}
	out.Lock()
	defer out.Unlock()
	_, err = fmt.Println(id)
	return err
}

// TestCrash kills processes while they commit. Two share the folder, and one of
// them lives on.
func TestCrash(t *testing.T) {
	if testing.Short() && *crashRounds > 5 {
		*crashRounds = 5
	}
	folder := t.TempDir()
	other := opened(t, folder)
	var o outcomes
	for round := range *crashRounds {
		if round%4 == 3 { // all at once, so that the next one has to mend
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
		}
		o.done = append(o.done, killed(t, folder, round)...)
		if round%4 == 3 {
			other = opened(t, folder)
		}
		id := fmt.Sprint("other ", round)
		if _, err := other.Commit(t.Context(), mark(id)); err != nil {
			t.Fatal(err)
		}
		o.done = append(o.done, id)
		if round%5 == 0 || round == *crashRounds-1 {
			o.withBlobs(t, other)
		}
	}
	if len(o.done) < 5**crashRounds {
		t.Errorf("in %d rounds %d commits were answered", *crashRounds, len(o.done))
	}
}

// killed returns what a process was answered before it was killed.
func killed(t *testing.T, folder string, round int) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), crashFolder+"="+folder, fmt.Sprint(crashRound, "=", round))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []string
	lines := bufio.NewReader(stdout)
	for left := 1 + rand.IntN(80); ; left-- {
		if left == 0 {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break // what is half a line was not said
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, strings.TrimSuffix(line, "\n"))
	}
	_ = cmd.Wait() // it was killed
	if stderr.Len() > 0 {
		t.Fatalf("the process to be killed: %s", stderr.String())
	}
	return ids
}

func (o *outcomes) withBlobs(t *testing.T, s *Store) {
	t.Helper()
	o.held(t, s, nil)
	for _, id := range o.done {
		if strings.HasPrefix(id, "other") {
			continue
		}
		data := "blob " + id
		if got, err := s.Blob(t.Context(), digestOf(data)); err != nil || string(got) != data {
			t.Errorf("%s: %q, %v", data, got, err)
		}
	}
}
