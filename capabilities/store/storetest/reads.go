package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

func testGet(h *harness) {
	v := h.write(
		store.Write{Key: key("a"), Value: []byte("1"), Class: 3}, store.Write{Key: key("empty")},
		store.Write{Key: key(""), Value: []byte("no name")}, store.Write{Key: key("high"), Value: []byte{0, 0xff}, Class: 255},
	)
	w := h.write(put("b", "2"))
	got, err := h.snapshot().Get(h.ctx(), key("b"), key("none"), key("a"), key("empty"), key("a"), key(""), key("high"))
	h.must(err)
	for i, e := range got { // whether nothing is nil or empty is the store's
		if len(e.Value) == 0 {
			got[i].Value = nil
		}
	}
	want := []store.Entry{
		{Key: key("b"), Version: w, Value: []byte("2")},
		{Key: key("none")},
		{Key: key("a"), Version: v, Class: 3, Value: []byte("1")},
		{Key: key("empty"), Version: v},
		{Key: key("a"), Version: v, Class: 3, Value: []byte("1")},
		{Key: key(""), Version: v, Value: []byte("no name")},
		{Key: key("high"), Version: v, Class: 255, Value: []byte{0, 0xff}},
	}
	if !reflect.DeepEqual(got, want) {
		h.Errorf("get:\n%v\nwant\n%v", got, want)
	}
	if es, err := h.snapshot().Get(h.ctx()); err != nil || len(es) != 0 {
		h.Errorf("get of nothing: %v, %v", es, err)
	}
	// Nobody can change what is kept through what was returned or given.
	value := []byte("mine")
	h.write(store.Write{Key: key("own"), Value: value})
	value[0] = 'X'
	h.now("own").Value[1] = 'X'
	h.has(h.snapshot(), "own", "mine")
}

// awkward are names that sort, compare or print in ways of their own.
var awkward = []string{
	"", "\x00", "\x00\x00", "\x00a", "\x01", " ", "%", "A", "_", "a", "a\x00", "a\x00b", "a\x00\xff", "a\x01", "a ", "a/b", "a'\"`;--",
	"ab", "a\xff", "a\xff\xff", "b", "é", "e\u0301", "ß", "\u2028", "\U0001f980", "\x80", "\xc3\x28", "\xfe", "\xff", "\xff\x00", "\xff\xff",
	strings.Repeat("l", store.MaxName),
}

func testNames(h *harness) {
	var writes []store.Write
	for _, n := range awkward {
		writes = append(writes, put(n, fmt.Sprintf("value of %x", n[:min(len(n), 9)])))
	}
	rand.Shuffle(len(writes), func(i, j int) { writes[i], writes[j] = writes[j], writes[i] })
	h.write(writes...)
	sorted := slices.Sorted(slices.Values(awkward))
	s := h.snapshot()
	check := func(what string, es []store.Entry, want []string) {
		h.Helper()
		var got []string
		for _, e := range es {
			got = append(got, e.Name)
			if want := fmt.Sprintf("value of %x", e.Name[:min(len(e.Name), 9)]); string(e.Value) != want || e.Space != space {
				h.Errorf("%s: %q has %q in %v", what, e.Name, e.Value, e.Space)
			}
		}
		if !slices.Equal(got, want) {
			h.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("all", h.scan(s, all(), 1000), sorted)
	for _, from := range sorted {
		for _, to := range sorted {
			var want []string
			for _, n := range sorted {
				if n >= from && (to == "" || n < to) {
					want = append(want, n)
				}
			}
			check(fmt.Sprintf("from %.9q to %.9q", from, to), h.scan(s, store.Range{Space: space, From: from, To: to}, 1000), want)
		}
		es, err := s.Get(h.ctx(), key(from))
		h.must(err)
		check(fmt.Sprintf("get %.9q", from), es, []string{from})
	}
	for _, p := range sorted {
		var want []string
		for _, n := range sorted {
			if strings.HasPrefix(n, p) {
				want = append(want, n)
			}
		}
		check(fmt.Sprintf("prefix %.9q", p), h.scan(s, store.Prefix(space, p), 1000), want)
	}
}

func testScan(h *harness) {
	if es := h.scan(h.snapshot(), all(), 10); len(es) != 0 {
		h.Errorf("an empty store has %v", es)
	}
	for i := range 25 {
		h.write(put(fmt.Sprintf("k%02d", i*7%25), fmt.Sprint(i*7%25)))
	}
	h.write(del("k03"), put("k04", "four"))
	s := h.snapshot()
	for _, c := range []struct {
		from, to string
		limit    int
		want     string
	}{
		{"", "", 0, ""},
		{"", "", -1, ""},
		{"", "", 1, `"k00"=0 `},
		{"k02", "", 3, `"k02"=2 "k04"=four "k05"=5 `},
		{"k02", "k04", 9, `"k02"=2 `},
		{"k021", "k0499", 9, `"k04"=four `},
		{"k02", "k02", 9, ""},
		{"k09", "k02", 9, ""},
		{"k23", "", 9, `"k23"=23 "k24"=24 `},
		{"zzz", "", 9, ""},
		{"", "k02", 9, `"k00"=0 "k01"=1 `},
	} {
		if got := pairs(h.scan(s, store.Range{Space: space, From: c.from, To: c.to}, c.limit)); got != c.want {
			h.Errorf("scan from %q to %q, limit %d: %s, want %s", c.from, c.to, c.limit, got, c.want)
		}
	}
	// Pages add up to the whole.
	var paged []store.Entry
	for from := ""; ; {
		page := h.scan(s, store.Range{Space: space, From: from}, 4)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		from = page[len(page)-1].Name + "\x00"
	}
	if whole := h.scan(s, all(), 1000); len(whole) != 24 || !reflect.DeepEqual(paged, whole) {
		h.Errorf("pages:\n%s\nwhole:\n%s", pairs(paged), pairs(whole))
	}
}

// testSnapshot lets a model go along: each snapshot has to go on showing what
// the model was at its moment.
func testSnapshot(h *harness) {
	r := rand.New(rand.NewPCG(7, 7))
	type moment struct {
		s     store.Snapshot
		model map[string]string
	}
	model := map[string]string{}
	var moments []moment
	for step := range 300 {
		if step%20 == 0 {
			m := map[string]string{}
			for k, v := range model {
				m[k] = v
			}
			moments = append(moments, moment{h.snapshot(), m})
		}
		var writes []store.Write
		for _, k := range r.Perm(12)[:1+r.IntN(4)] {
			name := fmt.Sprintf("k%02d", k)
			if r.IntN(3) == 0 {
				writes = append(writes, del(name))
				delete(model, name)
				continue
			}
			value := fmt.Sprintf("%d at %d", k, step)
			writes = append(writes, put(name, value))
			model[name] = value
		}
		h.write(writes...)
	}
	for i, m := range moments {
		want := ""
		for k := range 14 {
			name := fmt.Sprintf("k%02d", k)
			h.has(m.s, name, m.model[name])
			if v, ok := m.model[name]; ok {
				want += fmt.Sprintf("%q=%s ", name, v)
			}
		}
		if got := pairs(h.scan(m.s, all(), 100)); got != want {
			h.Errorf("snapshot %d shows\n%s\nand was\n%s", i, got, want)
		}
		half := pairs(h.scan(m.s, store.Range{Space: space, From: "k03", To: "k07"}, 2))
		if !strings.Contains(want, half) {
			h.Errorf("snapshot %d shows %s of %s", i, half, want)
		}
	}
}

func testSpaces(h *harness) {
	spaces := []store.Space{
		{Principal: "alice", Package: "a", Area: "kv"},
		{Principal: "alice", Package: "a", Area: "volume/data"},
		{Principal: "alice", Package: "akv", Area: ""},
		{Principal: "alicea", Package: "", Area: "kv"},
		{Principal: "", Package: "", Area: ""},
		{Principal: "Alice", Package: "a", Area: "kv"},
		{Principal: "\u00e9", Package: "a", Area: "kv"},
		{Principal: "e\u0301", Package: "a", Area: store.AreaUndo},
	}
	for i, s := range spaces {
		h.write(store.Write{Key: store.Key{Space: s, Name: "same"}, Value: fmt.Append(nil, i)})
	}
	snap := h.snapshot()
	for i, s := range spaces {
		want := fmt.Sprintf("%q=%d ", "same", i)
		es, err := snap.Get(h.ctx(), store.Key{Space: s, Name: "same"})
		h.must(err)
		if got := pairs(es); got != want || es[0].Space != s {
			h.Errorf("%v has %s", s, got)
		}
		if got := h.scan(snap, store.Range{Space: s}, 9); pairs(got) != want || got[0].Space != s {
			h.Errorf("%v shows %s", s, pairs(got))
		}
	}
	got, err := h.Spaces(h.ctx())
	h.must(err)
	byText := func(a, b store.Space) int { return strings.Compare(fmt.Sprintf("%q", a), fmt.Sprintf("%q", b)) }
	slices.SortFunc(got, byText)
	slices.SortFunc(spaces, byText)
	if !slices.Equal(got, spaces) {
		h.Errorf("spaces: %q, want %q", got, spaces)
	}
	h.write(store.Write{Key: store.Key{Space: spaces[0], Name: "same"}, Delete: true})
	got, err = h.Spaces(h.ctx())
	h.must(err)
	if slices.Contains(got, spaces[0]) || len(got) != len(spaces)-1 {
		h.Errorf("spaces once %q is empty: %q", spaces[0], got)
	}
}

func testBounds(h *harness) {
	name, value := strings.Repeat("n", store.MaxName+1), make([]byte, store.MaxValue+1)
	for what, w := range map[string]store.Write{
		"name": put(name, "v"), "value": {Key: key("k"), Value: value}, "name to delete": del(name),
	} {
		c := commitOf(put("beside", "v"), w)
		c.Records = []store.Record{{Time: c.Time, Data: []byte("{}")}}
		if _, err := h.Commit(h.ctx(), c); !errors.Is(err, store.ErrTooLarge) {
			h.Errorf("%s above the bound: %v, want it too large", what, err)
		}
	}
	if _, err := h.PutBlob(h.ctx(), make([]byte, store.MaxBlob+1)); !errors.Is(err, store.ErrTooLarge) {
		h.Errorf("blob above the bound: %v, want it too large", err)
	}
	h.has(h.snapshot(), "beside", "")
	h.records(0)
	if _, err := h.Commit(h.ctx(), &store.Commit{Writes: []store.Write{put("k", "v")}}); err == nil {
		h.Error("a commit without an ID was done: a second one would not be")
	}
}

func testLarge(h *harness) {
	sizes := []int{1 << 20, 1<<20 + 1, 5<<20 - 3}
	if !testingShort() {
		sizes = append(sizes, store.MaxValue)
	}
	for i, n := range sizes {
		value := bytes.Repeat([]byte("0123456789abcdef\x00"), n/17+1)[:n]
		h.write(store.Write{Key: key(fmt.Sprint(i)), Value: value}, put(fmt.Sprint(i, " beside"), "small"))
		old := h.snapshot()
		h.write(put(fmt.Sprint(i), "replaced"))
		if e := h.at(old, fmt.Sprint(i)); !bytes.Equal(e.Value, value) {
			h.Errorf("a value of %d bytes came back as %d others", n, len(e.Value))
		}
		es := h.scan(old, store.Prefix(space, fmt.Sprint(i)), 9)
		if len(es) != 2 || !bytes.Equal(es[0].Value, value) || string(es[1].Value) != "small" {
			h.Errorf("a value of %d bytes is not what the scan shows", n)
		}
	}
}
