//go:build !linux && !darwin

package volume

import "os"

func openAttributes(root *os.Root, path string) (*os.File, error) {
	return root.OpenFile(path, os.O_RDONLY|nonblock, 0)
}

// Extended attributes, alternate streams and access control lists are not known
// here: what replaces a file has none of them.
func useOf(string) attributeUse                          { return attributeDropped }
func readAttributes(*os.File) (map[string][]byte, error) { return nil, nil }
func writeAttribute(*os.File, string, []byte) error      { return nil }
func removeAttribute(*os.File, string) error             { return nil }
