package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/internal/audit"
	"github.com/sandboxd/sandboxd/internal/term"
)

// verifyPatience is how long records of a store of several machines may take to
// be readable: as long as a transaction of somebody else's that began before.
const verifyPatience = 10 * time.Second

// verify checks the log and says what is wrong with it.
func (c *logCmd) verify(a *app, s store.Store) error {
	settings, err := a.settings()
	if err != nil {
		return err
	}
	o := audit.VerifyOptions{}
	if settings.Store != "" {
		o.Patience = verifyPatience
	}
	if c.Heads != "" {
		b, err := os.ReadFile(c.Heads)
		if err != nil {
			return fmt.Errorf("--heads: %w", err)
		}
		if o.Noted, err = audit.ParseHeads(b); err != nil {
			return fmt.Errorf("--heads %s: %w; give it what log --verify --json printed", c.Heads, err)
		}
	}
	v, err := audit.Verify(a.ctx, s, o)
	if err != nil {
		return err
	}
	if err := c.printVerdict(a, v); err != nil {
		return err
	}
	if len(v.Faults) > 0 {
		return fmt.Errorf("log --verify: the log is not as it was written: %d faults in %d records of %d chains", len(v.Faults), v.Records, v.Chains)
	}
	return nil
}

func (c *logCmd) printVerdict(a *app, v *audit.Verdict) error {
	if c.JSON {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s\n", term.JSON(b))
		return err
	}
	for _, f := range v.Faults {
		if _, err := fmt.Fprintf(a.stdout, "writer %s: record %d %s\n", term.Line(f.Writer), f.Record, f.Problem); err != nil {
			return err
		}
	}
	if len(v.Faults) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "checked %d records in %d chains: none was changed, removed or put elsewhere\n", v.Records, v.Chains)
	return err
}
