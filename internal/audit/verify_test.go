package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/audit"
)

// tampered is a journal that somebody has changed.
type tampered struct {
	store.Journal

	records []store.Logged
	heads   []store.Head
}

// chains returns a journal with records of several writers, some pruned.
func chains(lengths map[string][2]uint64) *tampered {
	j := &tampered{}
	for _, writer := range slices.Sorted(func(yield func(string) bool) {
		for w := range lengths {
			if !yield(w) {
				return
			}
		}
	}) {
		first, n := lengths[writer][0], lengths[writer][1]
		h := store.Head{Writer: writer, First: first}
		var prev store.Digest
		for i := uint64(1); i <= n; i++ {
			l := store.Logged{Writer: writer, N: i, Prev: prev, Record: store.Record{
				Time: time.Unix(int64(i), 0), Data: fmt.Appendf(nil, `{"type":"call","callId":"%s-%d"}`, writer, i),
			}}
			l.Hash = store.ChainHash(prev, writer, i, l.Record)
			if i < first {
				h.Prev = l.Hash
			} else {
				j.records = append(j.records, l)
			}
			prev = l.Hash
		}
		h.N, h.Hash = n, prev
		j.heads = append(j.heads, h)
	}
	j.number()
	return j
}

func (j *tampered) number() {
	for i := range j.records {
		j.records[i].Cursor = store.Cursor(fmt.Sprint(i + 1))
	}
}

func (j *tampered) Heads(context.Context) ([]store.Head, error) { return j.heads, nil }

func (j *tampered) Records(_ context.Context, after store.Cursor, limit int) ([]store.Logged, error) {
	i := 0
	if after != "" {
		fmt.Sscan(string(after), &i)
	}
	return j.records[i:min(len(j.records), i+limit)], nil
}

// at returns the place of a record.
func (j *tampered) at(writer string, n uint64) int {
	return slices.IndexFunc(j.records, func(l store.Logged) bool { return l.Writer == writer && l.N == n })
}

func (j *tampered) remove(writer string, from, to uint64) {
	j.records = slices.DeleteFunc(j.records, func(l store.Logged) bool { return l.Writer == writer && l.N >= from && l.N <= to })
	j.number()
}

// rehash recomputes the chain of a writer from a record on, as somebody does who
// knows how, and leaves the head.
func (j *tampered) rehash(writer string, from uint64) {
	for n := from; ; n++ {
		i := j.at(writer, n)
		if i < 0 {
			return
		}
		l := &j.records[i]
		if p := j.at(writer, n-1); p >= 0 {
			l.Prev = j.records[p].Hash
		}
		l.Hash = store.ChainHash(l.Prev, writer, n, l.Record)
	}
}

func faults(v *audit.Verdict) string {
	var out []string
	for _, f := range v.Faults {
		problem, _, _ := strings.Cut(f.Problem, ":")
		out = append(out, fmt.Sprintf("%s %d %s", f.Writer, f.Record, problem))
	}
	return strings.Join(out, "\n")
}

func verify(t fataler, j store.Journal, noted ...audit.Head) *audit.Verdict {
	t.Helper()
	v, err := audit.Verify(context.Background(), j, audit.VerifyOptions{Noted: noted})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ab() *tampered {
	return chains(map[string][2]uint64{"a": {1, 6}, "b": {4, 9}, "gone": {8, 7}})
}

func TestVerifyFindsWhatIsDone(t *testing.T) {
	clean := verify(t, ab())
	if len(clean.Faults) != 0 || clean.Records != 12 || clean.Chains != 3 || len(clean.Heads) != 3 || clean.Heads[1].N != 9 || clean.Heads[2].N != 7 {
		t.Fatalf("%+v", clean)
	}
	for name, c := range map[string]struct {
		do   func(*tampered)
		want string
	}{
		"data":              {func(j *tampered) { j.records[j.at("a", 3)].Data = []byte(`{}`) }, "a 3 was changed"},
		"time":              {func(j *tampered) { j.records[j.at("b", 9)].Time = time.Unix(99, 0) }, "b 9 was changed"},
		"removed":           {func(j *tampered) { j.remove("a", 3, 4) }, "a 3 is missing, and what follows up to 4"},
		"the first removed": {func(j *tampered) { j.remove("b", 4, 4) }, "b 4 is missing, and what follows up to 4"},
		"the end cut off":   {func(j *tampered) { j.remove("b", 7, 9) }, "b 7 is missing"},
		"all removed":       {func(j *tampered) { j.remove("a", 1, 6) }, "a 1 is missing"},
		"swapped": {func(j *tampered) {
			x, y := j.at("a", 2), j.at("a", 4)
			j.records[x], j.records[y] = j.records[y], j.records[x]
			j.number()
		}, "a 3 comes after record 4\na 2 comes after record 4\na 2 is missing, and what follows up to 3"},
		"contents swapped": {func(j *tampered) {
			x, y := &j.records[j.at("a", 2)], &j.records[j.at("a", 4)]
			x.Record, y.Record = y.Record, x.Record
		}, "a 2 was changed\na 4 was changed"},
		"doubled": {func(j *tampered) {
			j.records = slices.Insert(j.records, 3, j.records[2])
			j.number()
		}, "a 3 comes after record 3"},
		"to another chain":     {func(j *tampered) { j.records[j.at("a", 6)].Writer = "b"; j.number() }, "b 6 does not follow the record before it\nb 6 was changed"},
		"changed and rehashed": {func(j *tampered) { j.records[j.at("a", 5)].Data = nil; j.rehash("a", 5) }, "a 6 is not the one that the head of the chain names"},
		"rehashed alone": {func(j *tampered) {
			l := &j.records[j.at("a", 5)]
			l.Data, l.Hash = nil, store.ChainHash(l.Prev, "a", 5, store.Record{Time: l.Time})
		}, "a 6 does not follow the record before it"},
		"head moved back":    {func(j *tampered) { j.heads[0].N, j.heads[0].Hash = 4, j.records[3].Hash }, ""},
		"head removed":       {func(j *tampered) { j.heads = j.heads[1:] }, "a 6 belongs to a chain without a head"},
		"head that is wrong": {func(j *tampered) { j.heads[0].Hash[0]++ }, "a 6 is not the one that the head of the chain names"},
		"head without sense": {func(j *tampered) { j.heads[2].N = 3 }, "gone 3 cannot be the last one"},
		"head of nothing":    {func(j *tampered) { j.heads[2].Hash[0]++ }, "gone 7 was the last one when all were pruned, and is not the one that the head names"},
		"pruned otherwise":   {func(j *tampered) { j.heads[1].Prev[0]++ }, "b 4 does not follow the record before it"},
		"said to be pruned":  {func(j *tampered) { j.remove("a", 1, 2); j.heads[0].First = 3 }, "a 3 does not follow the record before it"},
	} {
		t.Run(name, func(t *testing.T) {
			j := ab()
			c.do(j)
			v := verify(t, j)
			// "to another chain" removes the end of a, too.
			want := c.want
			if name == "to another chain" {
				got := faults(v)
				if !strings.Contains(got, "a 6 is missing") {
					t.Errorf("found:\n%s", got)
				}
				return
			}
			if got := faults(v); got != want {
				t.Errorf("found:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// Somebody who can write to the store and knows how can remove records so that
// nothing in it tells. What was noted elsewhere does.
func TestNotedHeads(t *testing.T) {
	noted := verify(t, ab()).Heads
	written, err := json.Marshal(verify(t, ab()))
	if err != nil {
		t.Fatal(err)
	}
	read, err := audit.ParseHeads(written)
	if err != nil || !slices.Equal(read, noted) {
		t.Fatalf("%v, %v, want %v", read, err, noted)
	}
	for name, c := range map[string]struct {
		do   func(*tampered)
		want string
	}{
		"nothing": {func(*tampered) {}, ""},
		"the end and the head": {func(j *tampered) {
			j.remove("a", 5, 6)
			j.heads[0].N, j.heads[0].Hash = 4, j.records[3].Hash
		}, "a 5 is missing"},
		"rewritten": {func(j *tampered) {
			j.records[j.at("a", 2)].Data = nil
			j.rehash("a", 2)
			j.heads[0].Hash = j.records[j.at("a", 6)].Hash
		}, "a 6 is not the one that was noted"},
		"the whole chain": {func(j *tampered) { j.remove("a", 1, 6); j.heads = j.heads[1:] }, "a 6 is gone with its whole chain, whose head was noted"},
		"pruned":          {func(j *tampered) { j.heads[0].First, j.heads[0].Prev = 7, j.heads[0].Hash; j.remove("a", 1, 6) }, ""},
		"pruned another": {func(j *tampered) {
			j.heads[0].First, j.heads[0].Prev, j.heads[0].Hash = 7, store.Digest{1}, store.Digest{1}
			j.remove("a", 1, 6)
		}, "a 6 was pruned, and is not the one that was noted"},
		"a chain without records is forgotten": {func(j *tampered) { j.heads = j.heads[:2] }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := ab()
			c.do(j)
			if got := faults(verify(t, j)); got != "" {
				t.Errorf("without: %s", got)
			}
			if got := faults(verify(t, j, noted...)); got != c.want {
				t.Errorf("found:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
	later := chains(map[string][2]uint64{"a": {3, 60}, "b": {40, 90}, "gone": {8, 9}, "new": {1, 3}})
	if v := verify(t, later, noted...); len(v.Faults) != 0 || v.Chains != 4 {
		t.Errorf("written and pruned on: %s", faults(v))
	}
}

// Whatever one change of one record or of the order is: it is found.
func TestVerifyFindsEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(2, 40).Draw(t, "records")
		j := chains(map[string][2]uint64{"a": {1, n}, "b": {rapid.Uint64Range(1, 9).Draw(t, "first"), 9}})
		i := rapid.IntRange(0, len(j.records)-1).Draw(t, "record")
		l := &j.records[i]
		switch rapid.SampledFrom([]string{"data", "time", "hash", "prev", "number", "remove", "swap", "copy"}).Draw(t, "what") {
		case "data":
			l.Data = slices.Clone(l.Data)
			l.Data[rapid.IntRange(0, len(l.Data)-1).Draw(t, "byte")]++
		case "time":
			l.Time = l.Time.Add(time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "later")))
		case "hash":
			l.Hash[rapid.IntRange(0, 31).Draw(t, "byte")]++
		case "prev":
			l.Prev[rapid.IntRange(0, 31).Draw(t, "byte")]++
		case "number":
			l.N += rapid.Uint64Range(1, 3).Draw(t, "more")
		case "remove":
			j.records = slices.Delete(j.records, i, i+1)
		case "swap":
			k := rapid.IntRange(0, len(j.records)-1).Draw(t, "with")
			if j.records[k].Writer != l.Writer || k == i {
				t.Skip("another chain: their order is nobody's promise")
			}
			j.records[i], j.records[k] = j.records[k], j.records[i]
		case "copy":
			j.records = slices.Insert(j.records, rapid.IntRange(i+1, len(j.records)).Draw(t, "to"), *l)
		}
		j.number()
		v := verify(t, j)
		if len(v.Faults) == 0 {
			t.Fatal("not found")
		}
		if v.Faults[0].Writer != "a" && v.Faults[0].Writer != "b" {
			t.Fatalf("found at %+v", v.Faults[0])
		}
	})
}

// Who writes and prunes meanwhile is not taken for somebody who tampers.
func TestVerifyWhileOthersWork(t *testing.T) {
	folder := t.TempDir()
	stop := make(chan struct{})
	var work sync.WaitGroup
	for range 2 {
		s := openStore(t, folder)
		l := start(t, s, audit.Options{})
		work.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				writeIDs(l, i, i+1)
				end(l, i, i+10)
				if i%20 == 19 {
					if err := s.Prune(context.Background(), store.Prune{Now: time.Now(), RecordBytes: 200 << 10}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	j := openStore(t, folder)
	var noted []audit.Head
	checked := 0
	for checked < 20000 {
		v := verify(t, j, noted...)
		if len(v.Faults) > 0 {
			t.Errorf("%s", faults(v))
			break
		}
		checked += v.Records
		noted = v.Heads
	}
	close(stop)
	work.Wait()
}

// late is a journal whose last records cannot be read yet.
type late struct {
	*tampered

	at time.Time
}

func (l *late) Records(ctx context.Context, after store.Cursor, limit int) ([]store.Logged, error) {
	rs, err := l.tampered.Records(ctx, after, limit)
	if time.Now().Before(l.at) {
		rs = slices.DeleteFunc(slices.Clone(rs), func(r store.Logged) bool { return r.N > 5 })
	}
	return rs, err
}

func TestVerifyPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			after, patience time.Duration
			faults          int
		}{{time.Second, 0, 1}, {time.Second, 2 * time.Second, 0}, {3 * time.Second, 2 * time.Second, 1}} {
			j := &late{chains(map[string][2]uint64{"a": {1, 6}}), time.Now().Add(c.after)}
			v, err := audit.Verify(t.Context(), j, audit.VerifyOptions{Patience: c.patience})
			if err != nil || len(v.Faults) != c.faults {
				t.Errorf("%+v: %v, %v", c, v, err)
			}
		}
	})
}

func FuzzParseHeads(f *testing.F) {
	f.Add([]byte(`{"heads":[{"writer":"a","first":1,"n":2,"hash":"` + strings.Repeat("0a", 32) + `"}]}`))
	f.Add([]byte(`{"heads":[]}`))
	f.Add([]byte(`{"heads":[{"hash":"0"}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		hs, err := audit.ParseHeads(b)
		if (err == nil) != (hs != nil) || err != nil && !errors.Is(err, audit.ErrHeads) {
			t.Errorf("%v, %v", hs, err)
		}
	})
}
