package config

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// Bounds of the settings.
const (
	maxCalls    = 4096
	maxWaiting  = 1 << 16 // calls, and requests
	minBody     = kib
	maxBody     = 64 * mib
	minMemory   = 64 * kib // one page of WebAssembly memory
	minLog      = 64 * kib
	minGC       = 10
	maxGC       = 10_000
	minLimit    = 64 * mib // of the process; less would only collect garbage
	maxGrace    = time.Hour
	maxEndpoint = 1024 // bytes
)

func (d *decoder) limits(v strictyaml.Value, l *Limits) {
	if !v.Present() {
		return
	}
	o := object(v, "limits")
	count(o.Field("requests"), &l.Requests, 1, maxWaiting)
	size(o.Field("body"), &l.Body, minBody, maxBody)
	count(o.Field("calls"), &l.Calls, 1, maxCalls)
	count(o.Field("waiting"), &l.Waiting, 1, maxWaiting)
	size(o.Field("memory"), &l.Memory, minMemory, tib)
	packageLimits(o.Field("package"), "limits.package", &l.Package)
}

func packageLimits(v strictyaml.Value, at string, l *PackageLimits) {
	if !v.Present() {
		return
	}
	o := object(v, at)
	count(o.Field("calls"), &l.Calls, 1, maxCalls)
	count(o.Field("waiting"), &l.Waiting, 1, maxWaiting)
	size(o.Field("memory"), &l.Memory, minMemory, tib)
}

func (d *decoder) listen(v strictyaml.Value, l *Listen, authenticated bool) {
	if !v.Present() {
		return
	}
	o := object(v, "listen")
	told := o.Field("withoutAuthentication")
	if l.WithoutAuthentication = told.Truth(); l.WithoutAuthentication && authenticated {
		told.Fail("is true where there are principals, who do authenticate", "remove one of the two")
	}
	d.address(o.Field("http"), &l.HTTP, authenticated, l.WithoutAuthentication)
	d.address(o.Field("metrics"), &l.Metrics, authenticated, l.WithoutAuthentication)
	if m := o.Field("metrics"); m.Present() && l.Metrics == l.HTTP {
		m.Fail("is the address of http", "leave it out: metrics are served there too")
	}
}

func (d *decoder) address(v strictyaml.Value, dst *string, authenticated, told bool) {
	if !v.Present() {
		return
	}
	*dst = v.Text("write host:port, for example 127.0.0.1:8080")
	if problem, mend, cause := judge(*dst, authenticated, told); cause != nil {
		v.FailCause(strictyaml.Quote(*dst)+": "+problem, mend, cause)
	}
}

// wasmOpt returns which wasm-opt is used.
func (d *decoder) wasmOpt(v strictyaml.Value) string {
	if !v.Present() {
		return ""
	}
	const mend = "write off, auto, or the path of wasm-opt"
	switch s := v.Text(mend); s {
	case "off":
		return ""
	case "auto":
		return s
	}
	return d.path(v, mend)
}

func (d *decoder) audit(v strictyaml.Value, a *Audit) {
	if !v.Present() {
		return
	}
	o := object(v, "audit")
	size(o.Field("maxSize"), &a.MaxSize, minLog, tib)
	duration(o.Field("keep"), &a.Keep)
}

func (d *decoder) log(v strictyaml.Value, l *Log) {
	if !v.Present() {
		return
	}
	o := object(v, "log")
	if f := o.Field("level"); f.Present() {
		l.Level = f.OneOf("debug", "info", "warn", "error")
	}
	if f := o.Field("format"); f.Present() {
		l.Format = f.OneOf("text", "json")
	}
}

func (d *decoder) traces(v strictyaml.Value, t *Traces) {
	if !v.Present() {
		return
	}
	o := object(v, "traces")
	// An error does not show the URL: it may hold a password.
	at := o.Required("endpoint")
	const receiver = "write the URL of an OTLP receiver over HTTP, without user and query, for example http://127.0.0.1:4318"
	if t.Endpoint = at.Text(receiver); at.Present() && !validEndpoint(t.Endpoint) {
		at.Fail("is not the URL of a receiver", receiver)
	}
	f := o.Field("sample")
	const mend = "write a share from 0 to 1, for example 0.1"
	if !f.Is(strictyaml.Number, mend) {
		return
	}
	n, err := strconv.ParseFloat(f.Node.Text, 64)
	if err != nil || n < 0 || n > 1 {
		f.Fail(f.Node.Text+" is not a share", mend)
	}
	t.Sample = n
}

func validEndpoint(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxEndpoint && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && strictyaml.HiddenIn(s) == ""
}

func (d *decoder) process(v strictyaml.Value, p *Process) {
	if !v.Present() {
		return
	}
	o := object(v, "process")
	count(o.Field("gcPercent"), &p.GCPercent, minGC, maxGC)
	size(o.Field("memoryLimit"), &p.MemoryLimit, minLimit, tib)
}

func (d *decoder) grace(v strictyaml.Value, dst *time.Duration) {
	if !v.Present() {
		return
	}
	if *dst = v.Duration(maxGrace); *dst <= 0 {
		v.Fail("is no time at all", "write a duration as 30s or 1m30s")
	}
}

// count reads a whole number between least and most where there is one.
func count(v strictyaml.Value, dst *int, least, most uint64) {
	mend := fmt.Sprintf("write a whole number from %d to %d", least, most)
	if !v.Is(strictyaml.Number, mend) {
		return
	}
	n, err := strconv.ParseUint(v.Node.Text, 10, 64)
	if err != nil || n < least || n > most {
		v.Fail(strictyaml.Clip(v.Node.Text)+" is not allowed", mend)
		return
	}
	*dst = int(n)
}

// size reads bytes between least and most where there are some.
func size(v strictyaml.Value, dst *int64, least, most int64) {
	n, ok := v.Size(most)
	if !ok {
		return
	}
	if n < least {
		v.Fail(fmt.Sprintf("%s is less than %d bytes", v.Node.Text, least), "raise it, or leave it out for the default")
	}
	*dst = n
}
