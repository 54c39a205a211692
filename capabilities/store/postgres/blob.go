package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/sandboxd/sandboxd/capabilities/store"
)

// A blob that is put again is young again; it is not written for that more than
// once an hour, but where what is kept of it was damaged.
const putBlobSQL = `insert into @.blobs as b (digest, data, touched) values ($1, $2, now())
	on conflict (digest) do update set data = excluded.data, touched = now()
	where b.touched < now() - interval '1 hour' or b.data <> excluded.data`

// PutBlob keeps data, see [store.Blobs].
func (s *Store) PutBlob(ctx context.Context, data []byte) (store.Digest, error) {
	if len(data) > store.MaxBlob {
		return store.Digest{}, fmt.Errorf("blob of %d bytes: %w", len(data), store.ErrTooLarge)
	}
	d := store.Digest(sha256.Sum256(data))
	err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error { // it can be done again
		_, err := conn.Exec(ctx, s.sql(putBlobSQL), d[:], orEmpty(data))
		return err
	})
	if err != nil {
		return store.Digest{}, fmt.Errorf("blob: %w", err)
	}
	return d, nil
}

// DamagedError: what is kept of a blob does not have its digest.
type DamagedError struct{ Digest store.Digest }

// Error names the blob.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("blob %s: what is kept has another digest", e.Digest)
}

// Blob returns a blob, see [store.Blobs]; a [*DamagedError] if it changed.
func (s *Store) Blob(ctx context.Context, d store.Digest) ([]byte, error) {
	var data []byte
	err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, s.sql("select data from @.blobs where digest = $1"), d[:]).Scan(&data)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("blob %s: %w", d, store.ErrGone)
	case err != nil:
		return nil, fmt.Errorf("blob %s: %w", d, err)
	case sha256.Sum256(data) != d:
		return nil, &DamagedError{d}
	}
	return data, nil
}

// blobSizes returns the sizes of the blobs that a commit names, as far as they
// are there: whether all are is for the commit to tell. They never change, so
// the commit need not read them, and be in the way of those who put others.
func (s *Store) blobSizes(ctx context.Context, c *store.Commit) (map[store.Digest]int64, error) {
	var digests [][]byte
	for _, w := range c.Writes {
		for d := range blobsOf(w) {
			digests = append(digests, d[:])
		}
	}
	if len(digests) == 0 {
		return nil, nil
	}
	sizes := make(map[store.Digest]int64, len(digests))
	err := s.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, s.sql("select digest, octet_length(data) from @.blobs where digest = any($1)"), digests)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var digest []byte
			var size int64
			if err := rows.Scan(&digest, &size); err != nil {
				return err
			}
			sizes[store.Digest(digest)] = size
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	return sizes, nil
}
