package sqlite

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// conn is a connection with the statements that were prepared on it. One
// goroutine uses it at a time.
type conn struct {
	*sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
}

func openConn(uri string, flags sqlite3.OpenFlag, pragmas ...string) (*conn, error) {
	db, err := sqlite3.OpenFlags(uri, flags|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: db, stmts: map[string]*sqlite3.Stmt{}}
	for _, p := range pragmas {
		if err := db.Exec("PRAGMA " + p); err != nil {
			_ = c.close()
			return nil, err
		}
	}
	return c, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close() // it says again what its last run said
	}
	return c.Conn.Close()
}

// bound returns a statement with its arguments.
func (c *conn) bound(sql string, args []any) (*sqlite3.Stmt, error) {
	s := c.stmts[sql]
	if s == nil {
		var err error
		if s, _, err = c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, err
		}
		c.stmts[sql] = s
	}
	for i, a := range args {
		if err := bind(s, i+1, a); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// name is text that is stored as the bytes it is.
type name string

func bind(s *sqlite3.Stmt, at int, a any) error {
	switch a := a.(type) {
	case nil:
		return s.BindNull(at)
	case int64:
		return s.BindInt64(at, a)
	case int:
		return s.BindInt64(at, int64(a))
	case string:
		return s.BindText(at, a)
	case name:
		return s.BindBlob(at, []byte(a))
	case []byte:
		if a == nil {
			a = []byte{} // a nil slice would be NULL
		}
		return s.BindBlob(at, a)
	}
	return fmt.Errorf("argument %d: type %T", at, a)
}

// exec runs a statement that has no rows.
func (c *conn) exec(sql string, args ...any) error {
	s, err := c.bound(sql, args)
	if err != nil {
		return err
	}
	return s.Exec()
}

// rows gives each row of a statement to f, until f returns false.
func (c *conn) rows(sql string, f func(*sqlite3.Stmt) bool, args ...any) error {
	s, err := c.bound(sql, args)
	if err != nil {
		return err
	}
	for s.Step() {
		if !f(s) {
			return s.Reset()
		}
	}
	err = s.Err()
	if e := s.Reset(); err == nil {
		err = e
	}
	return err
}

// row gives the first row to f, if there is one.
func (c *conn) row(sql string, f func(*sqlite3.Stmt), args ...any) error {
	return c.rows(sql, func(s *sqlite3.Stmt) bool {
		f(s)
		return false
	}, args...)
}

// begin starts a transaction that writes.
func (c *conn) begin() error { return c.exec("BEGIN IMMEDIATE") }

// rollback ends a transaction that failed, if the engine has not done so.
func (c *conn) rollback() {
	if !c.GetAutocommit() {
		_ = c.exec("ROLLBACK") // what failed is told already
	}
}
