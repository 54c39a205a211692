package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// OpenError is why a database cannot be used. It is one line, names the setting
// and never the password.
type OpenError struct {
	Server  string // where the database is; empty: unknown
	Problem string
	Err     error // nil: nothing more is known
}

// Error returns the setting, the server and the problem.
func (e *OpenError) Error() string {
	parts := []string{"store"}
	if e.Server != "" {
		parts = append(parts, e.Server)
	}
	return strings.Join(append(parts, e.Problem), ": ")
}

// Unwrap returns what the driver said.
func (e *OpenError) Unwrap() error { return e.Err }

// NewerError: the schema was made by a later version.
type NewerError struct{ Have, Want int }

// Error returns both formats.
func (e *NewerError) Error() string {
	return fmt.Sprintf("schema has format %d, this version knows %d: a later version made it", e.Have, e.Want)
}

// BusyError: the server refused a commit again and again for what others did at
// the same time, and the guards still hold. Nothing was written.
type BusyError struct {
	Tries int
	Err   error
}

// Error returns how often, and what the server said last.
func (e *BusyError) Error() string {
	return fmt.Sprintf("commit was refused %d times for what others do at the same time: %v", e.Tries, e.Err)
}

// Unwrap returns what the server said last.
func (e *BusyError) Unwrap() error { return e.Err }

// kind is what an error of the driver means for what was asked.
type kind uint8

const (
	other   kind = iota // it is answered as it is
	again               // refused for what others do: try again
	lost                // the connection or the server went away
	refused             // a guard does not hold
	twice               // the ID was committed before
	stale               // the end of the chain is not what it was taken for
	gone                // a blob is missing
)

// Codes of PostgreSQL, see its appendix A.
const (
	notNull       = "23502"
	foreignKey    = "23503"
	unique        = "23505"
	serialization = "40001"
	deadlock      = "40P01"
	readOnly      = "25006"
	noTable       = "42P01"
	noSchema      = "3F000"
)

func kindOf(err error) kind {
	if err == nil {
		return other
	}
	if errors.Is(err, errRange) {
		return refused
	}
	pe, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if lostConnection(err) {
			return lost
		}
		return other
	}
	switch {
	case pe.Code == serialization || pe.Code == deadlock:
		return again
	case pe.Code == notNull && (pe.TableName == "commits" || pe.TableName == "live"):
		return refused
	case pe.Code == notNull && pe.TableName == "heads":
		return stale
	case pe.Code == unique && pe.TableName == "commits":
		return twice
	case pe.Code == unique && pe.TableName == "records":
		return stale
	case pe.Code == unique:
		return again
	case pe.Code == foreignKey && pe.TableName == "refs":
		return gone
	case pe.Code == readOnly || strings.HasPrefix(pe.Code, "08") || strings.HasPrefix(pe.Code, "57P") || pe.Code == "53300":
		// A server that became a standby, or that ends, starts or is full.
		return lost
	}
	return other
}

// lostConnection tells an error of the network or of its time from mistakes of
// the host.
func lostConnection(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	return pgconn.SafeToRetry(err) || pgconn.Timeout(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, context.DeadlineExceeded)
}

// server returns where a database is, without the password.
func server(c *pgx.ConnConfig) string {
	if c == nil {
		return ""
	}
	u := url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database}
	if strings.HasPrefix(c.Host, "/") {
		u.RawQuery = "host=" + c.Host
	} else {
		u.Host = net.JoinHostPort(c.Host, fmt.Sprint(c.Port))
	}
	return u.String()
}

// openError says in one line what hinders the use of the database.
func (s *Store) openError(err error) error {
	e := &OpenError{Server: server(s.config), Err: err}
	pe, isPg := errors.AsType[*pgconn.PgError](err)
	newer, isNewer := errors.AsType[*NewerError](err)
	switch {
	case isNewer:
		e.Problem = newer.Error()
	case isPg && (pe.Code == "28P01" || pe.Code == "28000"):
		e.Problem = fmt.Sprintf("server does not let the user in: %s (%s)", pe.Message, pe.Code)
	case isPg && pe.Code == "3D000":
		e.Problem = fmt.Sprintf("server has no such database: %s (%s)", pe.Message, pe.Code)
	case isPg && pe.Code == "42501":
		e.Problem = fmt.Sprintf("user may not make the schema %s: %s (%s)", s.schema, pe.Message, pe.Code)
	case isPg:
		e.Problem = fmt.Sprintf("%s (%s)", pe.Message, pe.Code)
	case errors.Is(err, errStandby):
		e.Problem = errStandby.Error()
	default:
		e.Problem = "no server answers" + reason(err)
	}
	e.Problem = strings.Join(strings.Fields(e.Problem), " ")
	return e
}

// reason returns the innermost cause that can be told: what the driver says
// about it has lines and may have the URL.
func reason(err error) string {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ": " + ue.Err.Error()
	}
	if ne, ok := errors.AsType[*net.OpError](err); ok {
		return ": " + ne.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return " in time"
	}
	return ""
}
