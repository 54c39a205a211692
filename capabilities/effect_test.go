package capabilities

import (
	"encoding/json"
	"testing"
)

func TestVerb(t *testing.T) {
	for v, want := range map[Verb]string{
		Read: "read", Create: "create", Append: "append", Insert: "insert",
		Overwrite: "overwrite", Delete: "delete", Send: "send",
	} {
		b, err := v.MarshalText()
		var back Verb
		if err != nil || string(b) != want || v.String() != want || back.UnmarshalText(b) != nil || back != v {
			t.Errorf("%v: %s, %v", v, b, err)
		}
	}
	v := Send
	for _, s := range []string{"", "Read", "write", "verb(7)"} {
		if err := v.UnmarshalText([]byte(s)); err == nil || v != Send {
			t.Errorf("%q is read as %v", s, v)
		}
	}
	if _, err := Verb(7).MarshalText(); err == nil || Verb(7).String() != "verb(7)" {
		t.Error("a verb out of range is written")
	}
}

func TestEffectJSON(t *testing.T) {
	for _, tt := range []struct {
		e    Effect
		want string
	}{
		{Effect{Verb: Create, Kind: KindFile, Object: "/data/a", Bytes: 3}, `{"verb":"create","kind":"file","object":"/data/a","bytes":3}`},
		{Effect{Verb: Send, Kind: KindOutbox, Object: "h", Detail: "x"}, `{"verb":"send","kind":"outbox","object":"h","bytes":0,"detail":"x"}`},
	} {
		b, err := json.Marshal(tt.e)
		if err != nil || string(b) != tt.want {
			t.Errorf("%s, %v", b, err)
		}
		var back Effect
		if err := json.Unmarshal(b, &back); err != nil || back != tt.e {
			t.Errorf("%+v, %v", back, err)
		}
	}
	var e Effect
	if err := json.Unmarshal([]byte(`{"verb":"erase"}`), &e); err == nil {
		t.Errorf("an unknown verb is read: %+v", e)
	}
}
