package capabilities

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Access says what a package asks of a volume, or is given.
type Access uint8

// The accesses of a volume, weakest first.
const (
	NoAccess Access = iota
	ReadAccess
	WriteAccess
)

// String returns "none", "read" or "write".
func (a Access) String() string {
	switch a {
	case NoAccess:
		return "none"
	case ReadAccess:
		return "read"
	case WriteAccess:
		return "write"
	}
	return fmt.Sprintf("access(%d)", uint8(a))
}

// MarshalText writes "none", "read" or "write".
func (a Access) MarshalText() ([]byte, error) {
	if a > WriteAccess {
		return nil, fmt.Errorf("access %d: out of range", uint8(a))
	}
	return []byte(a.String()), nil
}

// UnmarshalText reads "none", "read" or "write".
func (a *Access) UnmarshalText(b []byte) error {
	for k := NoAccess; k <= WriteAccess; k++ {
		if k.String() == string(b) {
			*a = k
			return nil
		}
	}
	return fmt.Errorf("access %q: unknown", b)
}

// VolumeGrant is the access to one volume.
type VolumeGrant struct {
	Name   string `json:"name"`
	Path   string `json:"path"` // where the guest sees it, absolute
	Access Access `json:"access"`
}

// Policy is what a package requests, cut down to what the operator allows.
// The zero Policy allows nothing.
type Policy struct {
	Mode           Mode // default: Enforce
	Volumes        []VolumeGrant
	KV             bool     // the package's keys; default: none
	Outbox         []string // hosts that messages may be handed over for; default: none
	OptionalWrites []string // what a read-only tool may try in vain, see [Grant]
}

// Grant is the authority of one call: the claim that is held against it, and
// what it may touch. The zero Grant may touch nothing.
//
// OptionalWrites are patterns ([path.Match]) of files that a read-only tool may
// try to change: it gets EROFS and goes on, where it would be stopped. They hold
// in every volume. A pattern that has a slash is held against the whole path
// below the volume: ".git/index" is the one in the root, "logs/*" what lies
// in logs and not deeper. A pattern without one is held against the last name in
// whatever folder: "*.lock". A malformed pattern matches nothing.
type Grant struct {
	Mode           Mode          `json:"mode"`
	Claim          Effective     `json:"claim"`
	Volumes        []VolumeGrant `json:"volumes"`
	KV             Access        `json:"kv,omitempty"`
	Outbox         []string      `json:"outbox,omitempty"`
	OptionalWrites []string      `json:"optionalWrites,omitempty"`
}

// Derive returns the grant of a tool: its effective claim, and the policy cut
// down to what that claim can use. A read-only tool holds no volume and no keys
// for writing, and no outbox, whatever was requested.
func Derive(e Effective, p Policy) Grant {
	g := Grant{Mode: p.Mode, Claim: e, Volumes: slices.Clone(p.Volumes), OptionalWrites: slices.Clone(p.OptionalWrites)}
	for i := range g.Volumes {
		if e.ReadOnly {
			g.Volumes[i].Access = min(g.Volumes[i].Access, ReadAccess)
		}
	}
	switch {
	case p.KV && e.ReadOnly:
		g.KV = ReadAccess
	case p.KV:
		g.KV = WriteAccess
	}
	if !e.ReadOnly {
		g.Outbox = slices.Clone(p.Outbox)
	}
	return g
}

// Volume returns the access to the volume of that name; NoAccess for a volume
// that was not granted.
func (g Grant) Volume(name string) Access {
	for _, v := range g.Volumes {
		if v.Name == name {
			return v.Access
		}
	}
	return NoAccess
}

// optional reports whether the operator lists the guest path as a write that
// a read-only tool may try in vain.
func (g Grant) optional(volume, object string) bool {
	for _, v := range g.Volumes {
		if v.Name != volume {
			continue
		}
		rel := relative(v.Path, object)
		for _, p := range g.OptionalWrites {
			if ok, err := path.Match(p, rel); err == nil && ok {
				return true
			}
			if ok, err := path.Match(p, path.Base(rel)); err == nil && ok {
				return true
			}
		}
	}
	return false
}

func relative(root, object string) string {
	return strings.TrimPrefix(strings.TrimPrefix(object, strings.TrimSuffix(root, "/")), "/")
}
