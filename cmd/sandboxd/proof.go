package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/tool"
)

// proof is what holds of every tool of a package, whatever its code does,
// because it requests nothing with which it could be otherwise.
type proof struct {
	ReadOnly bool `json:"readOnly"`
	Closed   bool `json:"closed"`
}

// safeMethods are those that RFC 9110, section 9.2.1, defines to be safe.
var safeMethods = []string{"GET", "HEAD", "OPTIONS", "TRACE"}

func prove(r tool.Requests) proof {
	p := proof{
		ReadOnly: !r.KV && len(r.SQL) == 0 && len(r.Outbox) == 0 && len(r.Services) == 0,
		Closed:   len(r.HTTP) == 0 && len(r.Outbox) == 0 && len(r.Services) == 0,
	}
	for _, v := range r.Volumes {
		// Without an access of its own a volume is given as each tool's claim can use it.
		if v.Access != capabilities.ReadAccess {
			p.ReadOnly = false
		}
	}
	for _, h := range r.HTTP {
		unsafe := func(m string) bool { return !slices.Contains(safeMethods, m) }
		if len(h.Methods) == 0 || slices.ContainsFunc(h.Methods, unsafe) {
			p.ReadOnly = false
		}
	}
	return p
}

// flow is a way for data to leave: a closed tool can write a volume that an
// open tool of the same package can read.
type flow struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Volume string `json:"volume"`
}

func flows(ts []toolReport) []flow {
	fs := []flow{}
	for _, from := range ts {
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
