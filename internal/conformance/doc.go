// Package conformance runs the official conformance suite of the Model Context
// Protocol against `sandboxd serve` with the package in the folder guest. It
// holds tests only.
package conformance
