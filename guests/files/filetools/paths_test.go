package filetools

import "testing"

func TestWindows(t *testing.T) {
	for path, want := range map[string]bool{
		`C:`: true, `z:\a`: true, `c:/`: true, "": false, "C": false, "C:a": false, "/c:/a": false, "1:/": false, "[:/": false, "é:/": false,
	} {
		if windows(path) != want {
			t.Errorf("%q: %t", path, !want)
		}
	}
}
