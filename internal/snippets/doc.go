// Package snippets does what docs/connect.md and the files below deploy tell
// people to do, with the program itself: its tests are all that is in it.
package snippets
