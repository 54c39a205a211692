package volume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sandboxd/sandboxd/capabilities"
)

// OpenJournaled is [OpenDir] for a folder whose changes are committed elsewhere:
// what is staged says by Intent what it will do, durably, and who commits that
// publishes it. What a killed process has committed and not published is put in
// place before the folder is locked or, by [HostDir.Settle], read. Where folders
// cannot be locked, only one process may use one at a time.
func OpenJournaled(dir string, in Intents) (*HostDir, error) {
	h, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	h.intents = in
	if o, ok := in.(Owner); ok {
		h.owner = o.Owner()
	}
	return h, nil
}

// Settle puts in place what was committed to the folder and is not there yet: it
// waits for the process that does so, or takes over from one that was killed. It
// is called before a call reads the folder. It returns the errors of the folder
// and of [Intents]; what is not in place then stays pending.
func (h *HostDir) Settle(ctx context.Context) error {
	list, err := h.unfinished(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	l, err := h.settled(ctx, false)
	if err != nil {
		return err
	}
	l.unlock()
	return nil
}

// settled locks the folder when all that was committed is in place.
func (h *HostDir) settled(ctx context.Context, shared bool) (*lockedDir, error) {
	for {
		l, err := h.lock(ctx, shared)
		if err != nil {
			return nil, err
		}
		list, err := h.unfinished(ctx)
		if err == nil && !shared && h.intents != nil {
			err = h.finish(ctx, list)
			list = nil
		}
		if err == nil && !shared {
			l.sweepLeft()
		}
		if err == nil && len(list) == 0 {
			return l, nil
		}
		l.unlock()
		if err != nil {
			return nil, err
		}
		if err := h.Settle(ctx); err != nil {
			return nil, err
		}
	}
}

// committed is an intent that is pending.
type committed struct {
	id string
	in *intent
}

// unfinished returns the pending intents that are not in place. Of one that is,
// the stage has gone.
func (h *HostDir) unfinished(ctx context.Context) ([]committed, error) {
	if h.intents == nil {
		return nil, nil
	}
	list, err := h.intents.Pending(ctx)
	if err != nil {
		return nil, fmt.Errorf("volume intents: %w", err)
	}
	var left []committed
	for _, i := range list {
		in, err := parseIntent(i.Data)
		if err != nil {
			return nil, fmt.Errorf("volume intent %s: %w", i.ID, err)
		}
		there, err := h.staged(in)
		switch {
		case errors.Is(err, errElsewhere): // not this folder's to say
		case err != nil:
			return nil, fmt.Errorf("volume intent %s: %w", i.ID, named(err))
		case there:
			left = append(left, committed{i.ID, in})
		default:
			if err := h.intents.Done(ctx, i.ID); err != nil {
				return nil, fmt.Errorf("volume intent %s: %w", i.ID, err)
			}
		}
	}
	return left, nil
}

// errElsewhere: an intent belongs to another folder.
var errElsewhere = fmt.Errorf("%w: it is another folder's", capabilities.EINVAL)

// staged reports whether the stage of an intent is there. Without one the intent
// is done, if it is this folder's at all.
func (h *HostDir) staged(in *intent) (bool, error) {
	fi, err := h.disk.exists(in.Stage)
	switch {
	case err != nil:
		return false, err
	case fi != nil && fi.IsDir():
		return true, nil
	case in.Folder != h.folder.path && (in.Key == "" || in.Key != h.folder.key):
		return false, errElsewhere
	}
	return false, nil
}

// finish puts pending intents in place. The folder is locked.
func (h *HostDir) finish(ctx context.Context, list []committed) error {
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := h.resume(c.in); err != nil {
			return fmt.Errorf("volume intent %s: %w", c.id, named(err))
		}
		if err := h.intents.Done(ctx, c.id); err != nil {
			return fmt.Errorf("volume intent %s: %w", c.id, err)
		}
	}
	return nil
}

// Resume puts in place what a committed intent says, from whatever state a
// process left it in that was killed: what is done is not done again, and it can
// be repeated. What somebody else wrote in the meantime where the change belongs
// is moved into the folder's root and told of by [HostDir.Abandoned]. It returns
// EINVAL for what is no intent, or that of another folder.
func (h *HostDir) Resume(ctx context.Context, data []byte) error {
	in, err := parseIntent(data)
	if err != nil {
		return fmt.Errorf("volume intent: %w", err)
	}
	l, err := h.lock(ctx, false)
	if err != nil {
		return err
	}
	defer l.unlock()
	there, err := h.staged(in)
	if err == nil && there {
		err = h.resume(in)
	}
	if err != nil {
		return fmt.Errorf("volume intent: %w", named(err))
	}
	return nil
}

func (h *HostDir) resume(in *intent) error {
	p := newPublication(h, in.Stage)
	p.ops, p.forward, p.resumed = in.Operations, true, true
	if err := p.run(); err != nil {
		return err
	}
	stage, err := h.retired(in.Stage, p.kept)
	if err != nil {
		return err
	}
	h.empty(stage)
	return nil
}

// intentOf returns the intent of a publication.
func (h *HostDir) intentOf(p *publication) []byte {
	data, err := json.Marshal(intent{
		Version: intentVersion, Stage: p.stage, Folder: h.folder.path, Key: h.folder.key, Operations: p.ops,
	})
	if err != nil {
		return nil // plain data: it is written always
	}
	return data
}

// is reports whether a path has a stamp.
func (h *HostDir) is(path string, want Stamp) (bool, error) {
	st, err := h.stampNow(path)
	if err != nil {
		return false, err
	}
	if want.Digest != "" && st.Exists && st.Kind == File {
		if st.Digest, err = h.digestAlone(path); err != nil {
			if unreadable(err) {
				return false, nil
			}
			return false, err
		}
	}
	return st.Same(want), nil
}
