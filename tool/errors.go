package tool

import (
	"errors"

	"github.com/sandboxd/sandboxd/internal/strictyaml"
)

// ErrNotSupported is matched under errors.Is by the errors of what a manifest
// may say and this version does not do: the ABIs mcp and extism.
var ErrNotSupported = errors.New("not supported yet")

// ErrNoBuilder is matched under errors.Is where a package has a source and
// [Load] was given nothing to build it with.
var ErrNoBuilder = errors.New("no builder for packages with a source")

// ManifestError is what is wrong with a manifest or with a module's description
// of itself, where it is, and how it is mended.
type ManifestError = strictyaml.Error

// decoder reads manifests and descriptions.
type decoder struct {
	*strictyaml.Decoder
	patterns patterns // of all schemas of the package
}
