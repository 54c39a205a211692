// Package trust remembers which packages an operator trusts, and refuses those
// that have changed since. A local package is trusted the first time it is used:
// its module, what its tools say of themselves, and its requests for volumes,
// keys and SQL. What else it requests is recorded and not granted; one from
// oci:// is not trusted before it is approved.
//
// The store is a folder, <state>/trust, with one file a name. Several processes
// share it: a file is replaced whole, and decisions that write are made under a
// lock.
package trust
