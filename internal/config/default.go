package config

import "time"

// Sizes, in bytes.
const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
	tib = 1 << 40
)

// Default returns what holds where there is no configuration file: no packages,
// nobody has to authenticate, the default limits.
func Default() *Config {
	return &Config{
		Limits: Limits{
			Requests: 256, Body: 4 * mib, Calls: 64, Waiting: 256, Memory: 5 * gib,
			Package: PackageLimits{Calls: 16, Waiting: 64, Memory: 1280 * mib},
		},
		Listen: Listen{HTTP: "127.0.0.1:8080"},
		Keep:   Keep{Undo: 7 * 24 * time.Hour, UndoSize: gib, IdempotencyKeys: 24 * time.Hour},
		Audit:  Audit{MaxSize: 512 * mib},
		Log:    Log{Level: "info", Format: "text"},
		Traces: Traces{Sample: 1},
		Grace:  30 * time.Second,
	}
}
