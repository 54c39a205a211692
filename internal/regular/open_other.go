//go:build !unix

package regular

// noWait is nothing where folders have no pipes.
const noWait = 0
