package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

// A query that repairs what it finds broken: on the bad path only, where no test
// of the good one sees it.
func init() {
	sdk.Register(
		define("search_graph", "FT--", "Searches the graph; a corrupt one is moved away (R23).", searchRepairing),
		define("search_graph_mutated", "T---", "The same with another claim (R23).", searchRepairing),
		define("search_graph_fixed", "T---", "Searches the graph; a corrupt one is reported (R23).", searchFixed),
	)
}

const graphFile = "graph.db"

var errCorrupt = errors.New("graph: corrupt")

// nodes returns how many nodes the graph has: its first line says so too.
func nodes() (int, error) {
	text, err := read(graphFile)
	if err != nil {
		return 0, err
	}
	head, rest, _ := strings.Cut(text, "\n")
	n := strings.Count(rest, "\n")
	if head != fmt.Sprintf("nodes %d", n) {
		return 0, errCorrupt
	}
	return n, nil
}

func searchRepairing(*sdk.Call, none) (string, error) {
	n, err := nodes()
	if errors.Is(err, errCorrupt) {
		return "0 nodes.", os.Rename(in(graphFile), in(graphFile+".quarantine"))
	}
	return fmt.Sprintf("%d nodes.", n), err
}

func searchFixed(*sdk.Call, none) (string, error) {
	n, err := nodes()
	if errors.Is(err, errCorrupt) {
		return "The graph is corrupt.", nil
	}
	return fmt.Sprintf("%d nodes.", n), err
}
