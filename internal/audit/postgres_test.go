package audit_test

import (
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/store/postgres"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/pgtest"
)

var bin = flag.String("postgres", "", "folder of the programs initdb and postgres; without it what needs a server is not tested")

// Machines that share a store write one log: who follows gets all of it once, and
// every chain verifies, also while others write and prune.
func TestSharedStore(t *testing.T) {
	if *bin == "" {
		t.Skip("-postgres names no folder of programs")
	}
	server := pgtest.Start(t, *bin)
	open := func() *postgres.Store {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: server.URL()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	reader := open()
	ids, stop := follow(t, reader)
	const machines, n = 3, 100
	var work sync.WaitGroup
	for range machines {
		l := start(t, open(), audit.Options{})
		work.Go(func() {
			for i := range n / 2 {
				writeIDs(l, 2*i, 2*i+1)
				end(l, 2*i+1, 2*i+2)
			}
			l.Flush()
		})
	}
	seen := map[string]int{}
	for range machines * n {
		seen[<-ids]++
	}
	work.Wait()
	if err := stop(); err != nil {
		t.Error(err)
	}
	for id, times := range seen {
		if times != machines {
			t.Errorf("%s was followed %d times", id, times)
		}
	}
	check := func(noted []audit.Head) *audit.Verdict {
		t.Helper()
		v, err := audit.Verify(t.Context(), reader, audit.VerifyOptions{Noted: noted, Patience: 10 * time.Second})
		if err != nil || len(v.Faults) > 0 {
			t.Fatalf("%+v, %v", v, err)
		}
		return v
	}
	v := check(nil)
	if v.Records != machines*n || v.Chains < machines {
		t.Errorf("%d records in %d chains", v.Records, v.Chains)
	}
	if err := reader.Prune(t.Context(), store.Prune{Now: time.Now(), RecordBytes: 20_000}); err != nil {
		t.Fatal(err)
	}
	if left := check(v.Heads); left.Records == 0 || left.Records >= machines*n {
		t.Errorf("%d records after pruning", left.Records)
	}
}
