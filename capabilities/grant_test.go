package capabilities

import (
	"encoding/json"
	"testing"
)

func TestDerive(t *testing.T) {
	p := Policy{
		Volumes:        []VolumeGrant{{"a", "/a", WriteAccess}, {"b", "/b", ReadAccess}, {"c", "/c", NoAccess}},
		OptionalWrites: []string{".git/index"},
	}
	ro := Derive(Effective{ReadOnly: true}, p)
	if ro.Volume("a") != ReadAccess || ro.Volume("b") != ReadAccess || ro.Volume("c") != NoAccess || ro.Volume("d") != NoAccess {
		t.Errorf("read-only: %+v", ro)
	}
	rw := Derive(Effective{}, p)
	if rw.Volume("a") != WriteAccess || rw.Volume("b") != ReadAccess || rw.Volume("c") != NoAccess {
		t.Errorf("writer: %+v", rw)
	}
	// Preopens are the same for every tool: names, paths and order stay.
	for i, v := range ro.Volumes {
		if v.Name != p.Volumes[i].Name || v.Path != p.Volumes[i].Path {
			t.Errorf("volume %d: %+v", i, v)
		}
	}
	if p.Volumes[0].Access != WriteAccess {
		t.Error("the policy changed")
	}
	rw.Volumes[0].Access, rw.OptionalWrites[0] = NoAccess, "x"
	if p.Volumes[0].Access != WriteAccess || p.OptionalWrites[0] != ".git/index" || ro.OptionalWrites[0] != ".git/index" {
		t.Error("grants and policy share memory")
	}
}

func TestOptionalWrites(t *testing.T) {
	g := Derive(Effective{ReadOnly: true}, Policy{
		Volumes:        []VolumeGrant{{"data", "/data", WriteAccess}, {"root", "/", WriteAccess}},
		OptionalWrites: []string{".git/index", "*-shm", "[", "logs/*"},
	})
	for _, tt := range []struct {
		volume, object string
		want           Decision
	}{
		{"data", "/data/.git/index", Deny},
		{"data", "/data/app.db-shm", Deny},
		{"data", "/data/sub/app.db-shm", Deny},
		{"data", "/data/logs/a", Deny},
		{"data", "/data/logs/a/b", Violate},
		{"data", "/data/index", Violate},
		{"data", "/data/logs", Violate},
		{"data", "/data/sub/logs/a", Violate},
		{"data", "/data/app.db-shm/a", Violate},
		{"root", "/.git/index", Deny},
		{"root", "/data/.git/index", Violate},
		{"data", "/data/sub/.git/index", Violate},
		{"data", "/data2/.git/index", Violate},
		{"data", "/data", Violate},
	} {
		a := Attempt{Operation: OpWrite, Volume: tt.volume, Object: tt.object}
		v := g.Decide(a)
		if v.Decision != tt.want || v.Decision == Deny && (v.Errno != EROFS || v.Capability != CapVolumeWrite) {
			t.Errorf("%s in %s: %+v, want %v", tt.object, tt.volume, v, tt.want)
		}
	}
	writer := Derive(Effective{}, Policy{Volumes: []VolumeGrant{{"data", "/data", WriteAccess}}, OptionalWrites: []string{"*"}})
	if v := writer.Decide(Attempt{Operation: OpWrite, Volume: "data", Object: "/data/a"}); v.Decision != Allow {
		t.Errorf("a writer may write what is optional to readers: %+v", v)
	}
}

func TestAccess(t *testing.T) {
	for a, want := range map[Access]string{NoAccess: "none", ReadAccess: "read", WriteAccess: "write"} {
		b, err := a.MarshalText()
		if err != nil || string(b) != want || a.String() != want {
			t.Errorf("%d: %s, %v", a, b, err)
		}
		var back Access
		if err := back.UnmarshalText(b); err != nil || back != a {
			t.Errorf("%s is read as %d, %v", b, back, err)
		}
	}
	var a Access
	if _, err := Access(3).MarshalText(); err == nil || a.UnmarshalText([]byte("all")) == nil {
		t.Error("an access that there is not is written or read")
	}
	g := Derive(Effective{ReadOnly: true}, Policy{Volumes: []VolumeGrant{{"data", "/data", WriteAccess}}})
	b, err := json.Marshal(g)
	const want = `{"mode":"enforce","claim":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":false,"openWorldHint":false},` +
		`"volumes":[{"name":"data","path":"/data","access":"read"}]}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}
