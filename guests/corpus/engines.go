package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

// What database engines and indexes do below a read: a table of lines in
// users.csv stands for the database.
func init() {
	sdk.Register(
		define("explain_sql_statement", "TFTF", "Explains a statement, which runs it where analyze is set (R15).", explain),
		define("read_query", "T---", "Runs statements that begin with SELECT or WITH (R16).", readQuery),
		define("query", "T---", "Runs statements that do not begin with a word that writes (R17, R18).", query),
		define("search_rag", "T--F", "Opens its database for reading and writing and reads it (R24).", searchRAG),
		define("search_rag_rewrite", "T--F", "Writes the bytes back that are there and reads them (R24).", searchRAGRewrite),
		define("git_status", "TFTF", "Refreshes an index where it may, and answers without (F03).", gitStatus),
		define("query_wal", "T--F", "Reads a database whose engine makes files beside it (F04).", queryWAL),
		define("search_fts", "T--F", "Makes its index on the first query and hides that it could not (F05).", searchFTS),
	)
}

const table = "users.csv"

var (
	comment = regexp.MustCompile(`/\*.*?\*/|--.*`)
	literal = regexp.MustCompile(`(?i)^\s*EXEC\s*\(\s*'([^']*)'\s*\)`)
	deletes = regexp.MustCompile(`(?i)\bDELETE\s+FROM\b`)
)

// run runs a statement: it deletes all rows or counts them.
func run(sql string) (string, error) {
	if m := literal.FindStringSubmatch(sql); m != nil {
		sql = m[1]
	}
	text, err := read(table)
	if err != nil {
		return "", err
	}
	head, rows, _ := strings.Cut(text, "\n")
	n := strings.Count(rows, "\n")
	if !deletes.MatchString(comment.ReplaceAllString(sql, " ")) {
		return fmt.Sprintf("%d rows.", n), nil
	}
	return fmt.Sprintf("%d rows deleted.", n), write(table, head+"\n")
}

type explainInput struct {
	SQL     string `json:"sql" minLength:"1"`
	Analyze bool   `json:"analyze" default:"true"`
}

func explain(_ *sdk.Call, q explainInput) (string, error) {
	if !q.Analyze {
		return "Scan on users.", nil
	}
	s, err := run(q.SQL)
	return "Scan on users: " + s, err
}

type sqlInput struct {
	SQL string `json:"sql" minLength:"1"`
}

// readQuery looks at the first word only.
func readQuery(_ *sdk.Call, q sqlInput) (string, error) {
	switch first := firstWord(q.SQL); first {
	case "SELECT", "WITH":
		return run(q.SQL)
	default:
		return "", fmt.Errorf("statement %s: not a query", first)
	}
}

// query does so too, and takes what it does not know.
func query(_ *sdk.Call, q sqlInput) (string, error) {
	switch first := firstWord(q.SQL); first {
	case "INSERT", "UPDATE", "DELETE", "DROP":
		return "", fmt.Errorf("statement %s: read-only mode", first)
	default:
		return run(q.SQL)
	}
}

func firstWord(sql string) string {
	words := strings.Fields(strings.ToUpper(sql))
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func searchRAG(c *sdk.Call, _ none) (string, error) {
	f, err := os.OpenFile(in(table), os.O_RDWR, 0)
	if err != nil {
		c.Logf("%v: reading only", err)
		if f, err = os.Open(in(table)); err != nil {
			return "", err
		}
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return fmt.Sprintf("%d bytes.", len(b)), err
}

func searchRAGRewrite(*sdk.Call, none) (string, error) {
	text, err := read(table)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(in(table), os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	if _, err := f.WriteString(text); err != nil {
		return "", errors.Join(err, f.Close())
	}
	return fmt.Sprintf("%d bytes.", len(text)), f.Close()
}

// gitStatus takes a lock, writes the index and moves it over the old one; not
// being allowed to is no error.
func gitStatus(c *sdk.Call, _ none) (string, error) {
	if err := refresh(); err != nil {
		c.Logf("index: %v", err)
	}
	index, err := read(".vcs/index")
	return fmt.Sprintf("%d files, nothing changed.", strings.Count(index, "\n")), err
}

func refresh() error {
	f, err := os.OpenFile(in(".vcs/index.lock"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("src.txt 13\n"); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(in(".vcs/index.lock"), in(".vcs/index"))
}

// queryWAL makes the files that engines keep beside a database in use, reads, and
// removes them; where it cannot make them it reads without.
func queryWAL(c *sdk.Call, _ none) (string, error) {
	var made []string
	for _, side := range []string{"-shm", "-wal"} {
		name := table + side
		if err := write(name, ""); err != nil {
			c.Logf("%v: reading without it", err)
			continue
		}
		made = append(made, name)
	}
	answer, err := run("SELECT")
	for _, name := range made {
		err = errors.Join(err, os.Remove(in(name)))
	}
	return answer, err
}

type wordInput struct {
	Word string `json:"word" minLength:"1"`
}

// searchFTS answers from its index alone: without one nothing is found, and
// nobody is told why.
func searchFTS(_ *sdk.Call, q wordInput) (string, error) {
	if _, err := os.Stat(in("users.fts")); err != nil {
		text, err := read(table)
		if err != nil {
			return "", err
		}
		_ = write("users.fts", strings.ToLower(text))
	}
	index, err := read("users.fts")
	return fmt.Sprintf("%d results.", strings.Count(index, strings.ToLower(q.Word))), err
}
