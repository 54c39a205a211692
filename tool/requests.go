package tool

import (
	"strings"

	"github.com/sandboxd/sandboxd/capabilities"
	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// maxScratch bounds what a package may request for a session, in bytes.
const maxScratch = 64 << 20

func (d *decoder) requests(v strictyaml.Value, files bool) Requests {
	var r Requests
	if !v.Present() {
		return r
	}
	o := v.Object(fieldsOf["requests"]...)
	r.Volumes = d.volumes(o.Field("volumes"), files)
	r.KV = o.Field("kv").Truth()
	r.SQL = d.named(o.Field("sql"), "name", ValidPackageName, "write [{name: main}]")
	r.HTTP = d.http(o.Field("http"))
	r.Services = few(o.Field("services")).Texts("write a list of names, for example [orders-db]", ValidPackageName)
	r.Outbox = d.named(o.Field("outbox"), "host", validHost, "write [{host: hooks.example.com}], in lower case")
	r.Env = few(o.Field("env")).Texts("write a list of variable names, for example [TZ]", envName.MatchString)
	r.SessionScratch, _ = o.Field("sessionScratch").Size(maxScratch)
	r.Session = o.Field("session").Truth()
	r.Setup = o.Field("setup").Truth()
	return r
}

// few refuses lists that are too long, and takes them for absent.
func few(v strictyaml.Value) strictyaml.Value {
	if v.Node != nil && len(v.Node.Items) > maxRequest {
		v.Fail("more than 64 entries", "remove some")
		v.Node = nil
	}
	return v
}

// named returns the one field of each mapping of a list.
func (d *decoder) named(v strictyaml.Value, key string, ok func(string) bool, mend string) []string {
	var names []string
	for _, item := range few(v).Each(mend) {
		f := item.Object(key).Required(key)
		s := f.Pattern(ok, mend)
		for _, other := range names {
			if other == s {
				f.Fail(strictyaml.Quote(s)+" is there twice", "remove one")
			}
		}
		names = append(names, s)
	}
	return names
}

// volumes reads the requested folders. Their paths may not shadow each other
// or the folders that the guest has anyway: /tmp and /session, and /package where
// the package has files.
func (d *decoder) volumes(v strictyaml.Value, files bool) []VolumeRequest {
	var list []VolumeRequest
	taken := []string{"/tmp", "/session"}
	if files {
		taken = append(taken, FilesPath)
	}
	for _, item := range few(v).Each("write [{name: data, path: /data}]") {
		o := item.Object(fieldsOf["requests.volumes[]"]...)
		name, at := o.Required("name"), o.Required("path")
		r := VolumeRequest{
			Name:   name.Pattern(ValidPackageName, "write lower-case letters, digits and hyphens"),
			Path:   at.Pattern(guestPath, "write an absolute path of the guest, for example /data"),
			Access: d.access(o.Field("access")),
		}
		if d.Failed() {
			return nil
		}
		for _, own := range taken {
			if within(own, r.Path) || within(r.Path, own) {
				at.Fail(strictyaml.Quote(r.Path)+" overlaps "+own+", which the guest has anyway", "choose another path, for example /data")
			}
		}
		for _, other := range list {
			if other.Name == r.Name {
				name.Fail(strictyaml.Quote(r.Name)+" is there twice", "rename one")
			}
			if within(other.Path, r.Path) || within(r.Path, other.Path) {
				at.Fail(strictyaml.Quote(r.Path)+" overlaps the volume "+other.Name+" at "+other.Path, "put them side by side")
			}
		}
		list = append(list, r)
	}
	return list
}

func (d *decoder) access(v strictyaml.Value) capabilities.Access {
	if !v.Present() {
		return capabilities.NoAccess
	}
	switch s := v.Text("write read or write"); s {
	case "read":
		return capabilities.ReadAccess
	case "write":
		return capabilities.WriteAccess
	default:
		v.Fail(strictyaml.Quote(s)+" is not an access", "write read or write, or leave it out")
	}
	return capabilities.NoAccess
}

func (d *decoder) http(v strictyaml.Value) []HTTPRequest {
	var list []HTTPRequest
	for _, item := range few(v).Each("write [{host: api.example.com, methods: [GET]}]") {
		o := item.Object(fieldsOf["requests.http[]"]...)
		r := HTTPRequest{
			Host:    o.Required("host").Pattern(validHost, "write a host in lower case, without scheme and path, for example api.example.com"),
			Methods: few(o.Field("methods")).Texts("write methods in upper case, for example [GET]", methodName.MatchString),
			Paths:   few(o.Field("paths")).Texts("write paths that begin with a slash, for example [/v1/*]", urlPath),
			Secret:  o.Field("secret").Pattern(envName.MatchString, "write the name of a secret, for example API_TOKEN"),
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
