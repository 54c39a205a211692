package postgres

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// bounds returns the condition of a range on columns of t, and its arguments,
// the first of which is number n.
func bounds(t string, n int, r store.Range) (string, []any) {
	at := func(i int) string { return "$" + strconv.Itoa(n+i) }
	where, args := t+".space = "+at(0), []any{spaceID(r.Space)}
	if r.From != "" {
		head, tail := cut(r.From)
		where += " and " + t + ".head >= " + at(1) + " and (" + t + ".head, " + t + ".tail) >= (" + at(1) + ", " + at(2) + ")"
		args = append(args, head, tail)
		n += 2
	}
	if r.To != "" {
		head, tail := cut(r.To)
		where += " and " + t + ".head <= " + at(1) + " and (" + t + ".head, " + t + ".tail) < (" + at(1) + ", " + at(2) + ")"
		args = append(args, head, tail)
	}
	return where, args
}

// checkRanges sends what b has, and returns [errRange] unless the ranges are as
// they were.
func (d *doing) checkRanges(ctx context.Context, b *pgx.Batch) error {
	holds := true
	for _, r := range d.commit.Ranges {
		where, args := bounds("l", 1, r.Range)
		sql := "select l.head, l.tail, l.born, l.class from @.live l where " + where + " and " + aliveSQL + " order by l.head, l.tail"
		b.Queue(d.store.sql(sql), args...).Query(func(rows pgx.Rows) error {
			digest := store.NewRangeDigest(r.NamesOnly)
			for rows.Next() {
				var head, tail []byte
				var born int64
				var class int16
				if err := rows.Scan(&head, &tail, &born, &class); err != nil {
					return err
				}
				digest.Add(string(head)+string(tail), store.Version(born), uint8(class))
			}
			holds = holds && digest.Sum() == r.Digest
			return rows.Err()
		})
	}
	if err := d.slot.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if !holds {
		return errRange
	}
	return nil
}

// errRange is a range that is not what it was.
var errRange = errors.New("range changed")

// errNotCommitted: the server says that it rolled back.
var errNotCommitted = errors.New("server rolled back")

func committed(t pgconn.CommandTag) error {
	if t.String() != "COMMIT" {
		return errNotCommitted
	}
	return nil
}
