package tool

import (
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
)

// maxScratch bounds what a package may request for a session, in bytes.
const maxScratch = 64 << 20

func (d *decoder) requests(v value) Requests {
	var r Requests
	if !v.present() {
		return r
	}
	o := v.object(fieldsOf["requests"]...)
	r.Volumes = d.volumes(o.field("volumes"))
	r.KV = o.field("kv").truth()
	r.SQL = d.named(o.field("sql"), "name", packageName.MatchString, "write [{name: main}]")
	r.HTTP = d.http(o.field("http"))
	r.Services = o.field("services").few().texts("write a list of names, for example [orders-db]", packageName.MatchString)
	r.Outbox = d.named(o.field("outbox"), "host", validHost, "write [{host: hooks.example.com}], in lower case")
	r.Env = o.field("env").few().texts("write a list of variable names, for example [TZ]", envName.MatchString)
	r.SessionScratch, _ = o.field("sessionScratch").size(maxScratch)
	r.Session = o.field("session").truth()
	r.Setup = o.field("setup").truth()
	return r
}

// few refuses lists that are too long, and takes them for absent.
func (v value) few() value {
	if v.n != nil && len(v.n.items) > maxRequest {
		v.fail("more than 64 entries", "remove some")
		v.n = nil
	}
	return v
}

// named returns the one field of each mapping of a list.
func (d *decoder) named(v value, key string, ok func(string) bool, mend string) []string {
	var names []string
	for _, item := range v.few().each(mend) {
		f := item.object(key).required(key)
		s := f.pattern(ok, mend)
		for _, other := range names {
			if other == s {
				f.fail(quote(s)+" is there twice", "remove one")
			}
		}
		names = append(names, s)
	}
	return names
}

// volumes reads the requested folders. Their paths may not shadow each other
// or the folders that every guest has, /tmp and /session.
func (d *decoder) volumes(v value) []VolumeRequest {
	var list []VolumeRequest
	for _, item := range v.few().each("write [{name: data, path: /data}]") {
		o := item.object(fieldsOf["requests.volumes[]"]...)
		name, at := o.required("name"), o.required("path")
		r := VolumeRequest{
			Name:   name.pattern(packageName.MatchString, "write lower-case letters, digits and hyphens"),
			Path:   at.pattern(guestPath, "write an absolute path of the guest, for example /data"),
			Access: d.access(o.field("access")),
		}
		if d.failed() {
			return nil
		}
		for _, own := range []string{"/tmp", "/session"} {
			if within(own, r.Path) || within(r.Path, own) {
				at.fail(quote(r.Path)+" overlaps "+own+", which every guest has", "choose another path, for example /data")
			}
		}
		for _, other := range list {
			if other.Name == r.Name {
				name.fail(quote(r.Name)+" is there twice", "rename one")
			}
			if within(other.Path, r.Path) || within(r.Path, other.Path) {
				at.fail(quote(r.Path)+" overlaps the volume "+other.Name+" at "+other.Path, "put them side by side")
			}
		}
		list = append(list, r)
	}
	return list
}

func (d *decoder) access(v value) capabilities.Access {
	if !v.present() {
		return capabilities.NoAccess
	}
	switch s := v.text("write read or write"); s {
	case "read":
		return capabilities.ReadAccess
	case "write":
		return capabilities.WriteAccess
	default:
		v.fail(quote(s)+" is not an access", "write read or write, or leave it out")
	}
	return capabilities.NoAccess
}

func (d *decoder) http(v value) []HTTPRequest {
	var list []HTTPRequest
	for _, item := range v.few().each("write [{host: api.example.com, methods: [GET]}]") {
		o := item.object(fieldsOf["requests.http[]"]...)
		r := HTTPRequest{
			Host:    o.required("host").pattern(validHost, "write a host in lower case, without scheme and path, for example api.example.com"),
			Methods: o.field("methods").few().texts("write methods in upper case, for example [GET]", methodName.MatchString),
			Paths:   o.field("paths").few().texts("write paths that begin with a slash, for example [/v1/*]", urlPath),
			Secret:  o.field("secret").pattern(envName.MatchString, "write the name of a secret, for example API_TOKEN"),
		}
		list = append(list, r)
	}
	return list
}

// urlPath reports whether s is a path pattern of a URL: printable ASCII, no
// query, no fragment, no dot segments.
func urlPath(s string) bool {
	if len(s) > 1024 || !strings.HasPrefix(s, "/") || strings.ContainsAny(s, "?#\\ ") {
		return false
	}
	for seg := range strings.SplitSeq(s, "/") {
		if seg == "." || seg == ".." {
			return false
		}
	}
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
