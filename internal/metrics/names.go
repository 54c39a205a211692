package metrics

import (
	"maps"
	"slices"
)

// What has names of its own in the metrics.
const (
	MaxTools    = 64  // a package
	MaxPackages = 256 // an engine
)

// other is the label value of what has no name of its own.
const other = "other"

// maxName is the length of a tool's name in bytes at most (MCP, "Tool Names").
const maxName = 128

// names maps packages and their tools to label values.
type names struct {
	packages map[string]map[string]string // by package: label by the name in the package
	owners   map[string]int               // packages that have a tool under a label
}

func newNames() names {
	return names{packages: map[string]map[string]string{}, owners: map[string]int{}}
}

func (n names) pkg(name string) string {
	if _, ok := n.packages[name]; ok {
		return name
	}
	return other
}

func (n names) tool(pkg, tool string) string {
	if label, ok := n.packages[pkg][tool]; ok {
		return label
	}
	return other
}

// served returns the labels of a package's tools.
func (n names) served(pkg string) []string {
	return distinct(n.packages[pkg])
}

// serve sets a package's tools and returns the labels that nothing has any more.
func (n names) serve(pkg string, served map[string]string) (gone []string) {
	old, known := n.packages[pkg]
	if !known && (len(n.packages) >= MaxPackages || !valid(pkg)) {
		return nil
	}
	tools := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(served)) {
		if len(tools) == MaxTools {
			break
		}
		if label := served[name]; valid(label) {
			tools[name] = label
		}
	}
	n.packages[pkg] = tools
	for _, label := range distinct(tools) {
		n.owners[label]++
	}
	return n.release(old)
}

// forget drops a package and returns the labels that nothing has any more.
func (n names) forget(pkg string) (gone []string) {
	old := n.packages[pkg]
	delete(n.packages, pkg)
	return n.release(old)
}

// release returns the labels that had their last owner. Packages can swap names
// when a configuration changes, so a label may have two for a while.
func (n names) release(tools map[string]string) (gone []string) {
	for _, label := range distinct(tools) {
		if n.owners[label]--; n.owners[label] > 0 {
			continue
		}
		delete(n.owners, label)
		if label != other {
			gone = append(gone, label)
		}
	}
	return gone
}

func distinct(tools map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(tools)))
}

// valid reports whether a name can be one of a tool or package. What was
// validated before is: this keeps a caller that forgot to from making labels
// of any bytes.
func valid(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}
