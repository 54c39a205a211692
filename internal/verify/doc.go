// Package verify tells whether the tools of a package are what they declare: it
// calls each of them in throw-away worlds, holds every call against all four hints,
// whatever is declared, and reports what is proved, observed, broken, claimed less
// safely than it is, and not checked.
package verify
