package sqlite

import (
	"context"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

const (
	// pruneStep is how many rows are removed before others have their turn.
	pruneStep = 500
	// commitAge is how long the ID of a commit is known.
	commitAge = 24 * time.Hour
	// slack covers that a commit is answered some time after its own time.
	slack = time.Minute
)

// Prune removes what nobody needs any more, a little at a time: commits go on in
// between. The file does not shrink; its free pages are used again.
func (s *Store) Prune(ctx context.Context, p store.Prune) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if p.Now.IsZero() {
		return nil
	}
	replaced := max(p.Replaced, store.SnapshotAge) + slack
	pr := &pruning{now: p.Now.UnixNano(), horizon: p.Now.Add(-replaced).UnixNano(), forget: p.Now.Add(-max(replaced, commitAge)).UnixNano(), prune: p}
	steps := []func(*group) (bool, error){pr.expire, pr.mark, pr.versions, pr.commits, s.collect(p.Now), pr.records}
	for _, step := range steps {
		if err := s.steps(ctx, step); err != nil {
			return err
		}
	}
	return s.sweep(ctx, p.Now)
}

// steps has a step written until there is no more of it.
func (s *Store) steps(ctx context.Context, step func(*group) (more bool, err error)) error {
	for more := true; more; {
		if err := s.usable(ctx); err != nil {
			return err
		}
		err := s.queue.do(ctx, func(g *group) (err error) {
			more, err = step(g)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pruning is what may go: times in nanoseconds since 1970.
type pruning struct {
	now, horizon, forget int64
	prune                store.Prune
}

// expire deletes keys that expired, as a commit would.
func (p *pruning) expire(g *group) (bool, error) {
	type expired struct {
		row
		name string
	}
	var es []expired
	err := g.c.rows("SELECT space, name, born, class, expires, size, content FROM live WHERE expires <= ? LIMIT ?", func(r *sqlite3.Stmt) bool {
		es = append(es, expired{row{
			space: r.ColumnInt64(0), born: r.ColumnInt64(2), class: r.ColumnInt64(3), expires: r.ColumnInt64(4), size: r.ColumnInt64(5), content: r.ColumnInt64(6),
		}, string(r.ColumnRawBlob(1))})
		return true
	}, p.now, pruneStep)
	if err != nil || len(es) == 0 {
		return false, err
	}
	g.version++
	g.changed = true
	if err := g.c.exec("INSERT INTO commits (version, at) VALUES (?, ?)", g.version, g.now.UnixNano()); err != nil {
		return false, err
	}
	for _, e := range es {
		if err := g.retire(&e.row, e.name); err != nil {
			return false, err
		}
		if err := g.c.exec("DELETE FROM live WHERE space = ? AND name = ?", e.space, name(e.name)); err != nil {
			return false, err
		}
	}
	return len(es) == pruneStep, nil
}

// before returns the last version that was committed up to a time. Times after
// now, or after the clock where the pruning was begun long ago, are of a clock that
// was wrong, and old.
func (p *pruning) before(g *group, from, at int64) (int64, error) {
	version := g.version
	err := g.c.row("SELECT version - 1 FROM commits WHERE version > ? AND at > ? AND at <= ? ORDER BY version LIMIT 1", func(r *sqlite3.Stmt) {
		version = r.ColumnInt64(0)
	}, from, at, max(p.now, g.now.UnixNano()))
	return version, err
}

// mark says from where on snapshots can be read, before anything is removed.
func (p *pruning) mark(g *group) (bool, error) {
	v, err := p.before(g, g.horizon, p.horizon)
	if err == nil && v > g.horizon {
		g.horizon, g.changed = v, true
	}
	return false, err
}

// versions removes what was replaced before the horizon.
func (p *pruning) versions(g *group) (bool, error) {
	var spaces []int64
	err := g.c.rows("SELECT id FROM spaces", func(r *sqlite3.Stmt) bool {
		spaces = append(spaces, r.ColumnInt64(0))
		return true
	})
	if err != nil {
		return false, err
	}
	left := pruneStep
	for _, space := range spaces {
		n, err := g.bury(space, left)
		if err != nil {
			return false, err
		}
		if left -= n; left == 0 {
			return true, nil
		}
	}
	return false, nil
}

// bury removes the oldest dead rows of a space, at most limit.
func (g *group) bury(space int64, limit int) (int, error) {
	type old struct {
		died, content int64
		name          []byte
	}
	var olds []old
	err := g.c.rows("SELECT died, content, name FROM dead WHERE space = ? AND died <= ? LIMIT ?", func(r *sqlite3.Stmt) bool {
		olds = append(olds, old{r.ColumnInt64(0), r.ColumnInt64(1), r.ColumnBlob(2, nil)})
		return true
	}, space, g.horizon, limit)
	if err != nil {
		return 0, err
	}
	for _, o := range olds {
		g.changed = true
		if err := g.c.exec("DELETE FROM dead WHERE space = ? AND died = ? AND name = ?", space, o.died, o.name); err != nil {
			return 0, err
		}
		if err := g.c.exec("DELETE FROM contents WHERE id = ?", o.content); err != nil {
			return 0, err
		}
	}
	return len(olds), nil
}

// commits forgets the IDs of old commits.
func (p *pruning) commits(g *group) (bool, error) {
	v, err := p.before(g, 0, p.forget)
	if err != nil {
		return false, err
	}
	err = g.c.exec("DELETE FROM commits WHERE version IN (SELECT version FROM commits WHERE version <= ? ORDER BY version LIMIT ?)", v, pruneStep)
	if err != nil {
		return false, err
	}
	n := g.c.Changes()
	g.changed = g.changed || n > 0
	return n == pruneStep, nil
}

// records removes the oldest records that are too old, or too many.
func (p *pruning) records(g *group) (bool, error) {
	type link struct {
		n    int64
		hash []byte
	}
	firsts := map[int64]link{} // by writer: the last one that goes
	var last, removed int64
	left, all := pruneStep, false
	err := g.c.rows("SELECT seq, writer, n, hash, time, length(data) FROM records ORDER BY seq LIMIT ?", func(r *sqlite3.Stmt) bool {
		old := p.prune.Records > 0 && r.ColumnInt64(4) <= p.prune.Now.Add(-p.prune.Records).UnixNano()
		much := p.prune.RecordBytes > 0 && g.journal-removed > p.prune.RecordBytes
		if all = !old && !much; all {
			return false
		}
		last, removed, left = r.ColumnInt64(0), removed+r.ColumnInt64(5)+recordOverhead, left-1
		firsts[r.ColumnInt64(1)] = link{r.ColumnInt64(2), r.ColumnBlob(3, nil)}
		return true
	}, pruneStep)
	if err != nil || len(firsts) == 0 {
		return false, err
	}
	for writer, l := range firsts {
		if err := g.c.exec("UPDATE writers SET first = ?, prev = ? WHERE id = ?", l.n+1, l.hash, writer); err != nil {
			return false, err
		}
	}
	g.journal -= removed
	g.changed = true
	return left == 0, g.c.exec("DELETE FROM records WHERE seq <= ?", last)
}
