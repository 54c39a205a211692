package store

import "context"

// holdsPage is how many entries of a range are read at once.
const holdsPage = 1000

// Holds returns [ErrConflict] unless what the guards demand is so in a snapshot.
func Holds(ctx context.Context, s Snapshot, guards []Guard, ranges []RangeGuard) error {
	keys := make([]Key, len(guards))
	for i, g := range guards {
		keys[i] = g.Key
	}
	entries, err := s.Get(ctx, keys...)
	if err != nil {
		return err
	}
	for i, g := range guards {
		if entries[i].Version != g.Version {
			return ErrConflict
		}
	}
	for _, r := range ranges {
		digest, err := digestOf(ctx, s, r)
		switch {
		case err != nil:
			return err
		case digest != r.Digest:
			return ErrConflict
		}
	}
	return nil
}

// digestOf reads a range page by page.
func digestOf(ctx context.Context, s Snapshot, r RangeGuard) (string, error) {
	d := NewRangeDigest(r.NamesOnly)
	for rest := r.Range; ; {
		page, err := s.Scan(ctx, rest, holdsPage)
		if err != nil {
			return "", err
		}
		for _, e := range page {
			d.Add(e.Name, e.Version, e.Class)
		}
		if len(page) < holdsPage {
			return d.Sum(), nil
		}
		rest.From = page[len(page)-1].Name + "\x00"
	}
}
