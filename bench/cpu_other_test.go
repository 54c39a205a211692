//go:build !unix

package bench

import "time"

// processTime returns 0: it is not measured here.
func processTime() time.Duration { return 0 }
