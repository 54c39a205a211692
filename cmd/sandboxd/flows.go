package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/tool"
)

// flow is a way for data to leave: a closed tool can write a volume, or keys,
// that an open tool of the same package can read.
type flow struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Volume string `json:"volume,omitempty"` // this or keys
	Keys   bool   `json:"keys,omitempty"`
}

func flows(ts []toolReport) []flow {
	fs := []flow{}
	for _, from := range ts {
		for _, to := range ts {
			if !from.Effective.OpenWorld && from.keys == capabilities.WriteAccess && to.Effective.OpenWorld && to.keys >= capabilities.ReadAccess {
				fs = append(fs, flow{From: from.Name, To: to.Name, Keys: true})
			}
		}
		for _, v := range from.Volumes {
			if from.Effective.OpenWorld || v.Access != capabilities.WriteAccess {
				continue
			}
			for _, to := range ts {
				if to.Effective.OpenWorld && canRead(to, v.Name) {
					fs = append(fs, flow{From: from.Name, To: to.Name, Volume: v.Name})
				}
			}
		}
	}
	return fs
}

func canRead(t toolReport, volume string) bool {
	return slices.ContainsFunc(t.Volumes, func(v capabilities.VolumeGrant) bool {
		return v.Name == volume && v.Access >= capabilities.ReadAccess
	})
}

// requestLines returns what a package requests, a line each.
func requestLines(r tool.Requests) []string {
	lines := []string{}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, v := range r.Volumes {
		access := v.Access.String()
		if v.Access == capabilities.NoAccess {
			access = "as each tool's claim allows"
		}
		add("volume %s at %s, %s", v.Name, v.Path, access)
	}
	if r.KV {
		add("keys")
	}
	for _, s := range r.SQL {
		add("database %s", s)
	}
	for _, h := range r.HTTP {
		line := fmt.Sprintf("http %s %s %s", strings.Join(h.Methods, ","), h.Host, strings.Join(h.Paths, " "))
		if h.Secret != "" {
			line += ", with secret " + h.Secret
		}
		add("%s", line)
	}
	for _, s := range r.Services {
		add("service %s", s)
	}
	for _, s := range r.Outbox {
		add("outbox to %s", s)
	}
	if len(r.Env) > 0 {
		add("environment %s", strings.Join(r.Env, ", "))
	}
	if r.SessionScratch > 0 {
		add("session scratch, %d bytes", r.SessionScratch)
	}
	if r.Session {
		add("memory kept between calls")
	}
	if r.Setup {
		add("a setup transaction")
	}
	return lines
}
