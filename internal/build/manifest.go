package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sandboxd/sandboxd/tool"
)

// manifestABI returns the ABI that the tool.yaml in dir names; command where
// it names none or where there is no manifest.
func manifestABI(dir string) (tool.ABI, error) {
	name := filepath.Join(dir, "tool.yaml")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return tool.Command, nil
	}
	if err != nil {
		return "", fmt.Errorf("manifest: %w", err)
	}
	m, err := tool.ParseManifest(name, text)
	if err != nil {
		return "", err
	}
	return m.ABI, nil
}
