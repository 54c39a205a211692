//go:build race

package volume

func init() { hostileRounds = 10_000 } // the detector takes long, and memory of its own
