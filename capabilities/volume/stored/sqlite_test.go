package stored

import (
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/sandboxd/sandboxd/capabilities/store/sqlite"
)

// TestShadowSQLite is TestShadow on the store that most hosts have.
func TestShadowSQLite(t *testing.T) {
	db, err := sqlite.Open(t.Context(), sqlite.Options{Folder: quickDir(t)})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	s := newCounted()
	s.Store = db
	rapid.Check(t, func(rt *rapid.T) {
		_, err := Import(rt.Context(), s, space, fstest.MapFS{}, ImportOptions{Replace: true})
		must(rt, err)
		shadow(rt, s)
	})
}
