package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sandboxd/sandboxd/capabilities/store"
	"github.com/sandboxd/sandboxd/capabilities/undo"
	"github.com/sandboxd/sandboxd/internal/host"
	"github.com/sandboxd/sandboxd/internal/term"
	"github.com/sandboxd/sandboxd/runtime"
)

type undoCmd struct {
	CallID    string `arg:"" name:"call-id" help:"The id of the call, as call --json and log show it."`
	Principal string `default:"local" placeholder:"NAME" help:"Whose call it is. Default: local, who everybody is where there are no principals."`
	JSON      bool   `name:"json" help:"Print the result as one JSON object."`
}

func (undoCmd) Help() string {
	return `Puts back what the call changed or deleted, deletes what it made, and withdraws messages that were not sent yet: all of
it, or nothing where something has changed since. An undo is a call of its own, and is undone by its own id.

Exit status: 0 it was undone, 5 something has changed since or a message has left, 1 there is nothing that could be undone.

Examples:

    sandboxd log --tool delete_note
    sandboxd undo K6CJ3V5Q3ZCXW5JQYB2B6BJ4TF`
}

// Run takes the call back.
func (c *undoCmd) Run(a *app) (err error) {
	if !validPrincipal(c.Principal) {
		return fmt.Errorf("--principal %s: not a name for a principal", term.Line(c.Principal))
	}
	settings, err := a.settings()
	if err != nil {
		return err
	}
	h, err := host.Open(a.ctx, host.Options{State: a.state, Cache: a.cache, Config: settings, Logger: a.logger()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close(a.detached())) }()
	r := h.Undo(a.ctx, runtime.UndoRequest{CallID: c.CallID, Principal: c.Principal, AnyPackage: true})
	if r.Outcome == runtime.HostError {
		a.logger().Error("undo ended in a fault of the host", "call", r.CallID, "error", r.Err)
	}
	if c.JSON {
		err = printJSON(a.stdout, r)
	} else {
		c.print(a, r)
	}
	if s := exitStatus(r.Outcome); err == nil && s != 0 {
		return s
	}
	return err
}

// print says what became of the undo, and of what stands in its way where each
// thing is.
func (c *undoCmd) print(a *app, r *runtime.Result) {
	if r.Outcome == runtime.OK {
		fmt.Fprintf(a.stderr, "call %s was undone by call %s%s\n", term.Line(c.CallID), r.CallID, effectList(r.Effects))
		return
	}
	for _, raw := range r.Output.Content {
		text := strings.Replace(contentText(raw), "The call", "call "+c.CallID, 1)
		fmt.Fprintln(a.stderr, term.Line(text))
	}
	if e, ok := errors.AsType[*undo.ChangedError](r.Err); ok {
		for _, is := range e.Changed {
			fmt.Fprintf(a.stderr, "%s %s\n", term.Line(is.Object), is.How)
		}
		if e.More > 0 {
			fmt.Fprintf(a.stderr, "and %d more\n", e.More)
		}
		fmt.Fprintln(a.stderr, "put that back first: a later call that changed it can be undone, see sandboxd log")
	}
	if e, ok := errors.AsType[*undo.IncompleteError](r.Err); ok {
		for _, is := range e.Lost {
			fmt.Fprintf(a.stderr, "%s: %s\n", term.Line(is.Object), is.Why)
		}
	}
	if errors.Is(r.Err, undo.ErrNotFound) {
		fmt.Fprintf(a.stderr, "calls of other principals than %s are found with --principal\n", term.Line(c.Principal))
	}
}

// openStore opens the store of the state folder.
func openStore(ctx context.Context, a *app) (store.Store, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	return host.OpenStore(ctx, a.state, settings)
}
