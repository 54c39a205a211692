package main

import (
	"slices"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

func readGraph(*sdk.Call, struct{}) (graph, error) {
	f, err := load()
	if err != nil {
		return graph{}, err
	}
	return f.all(), nil
}

type searchInput struct {
	Query string `json:"query" description:"The search query to match against entity names, types, and observation content" maxLength:"2048"`
}

func searchNodes(_ *sdk.Call, in searchInput) (graph, error) {
	f, err := load()
	if err != nil {
		return graph{}, err
	}
	return f.part(func(e entity) bool { return e.matches(in.Query) }), nil
}

type namesInput struct {
	Names []string `json:"names" description:"An array of entity names to retrieve"`
}

func openNodes(_ *sdk.Call, in namesInput) (graph, error) {
	f, err := load()
	if err != nil {
		return graph{}, err
	}
	return f.part(func(e entity) bool { return slices.Contains(in.Names, e.Name) }), nil
}
