package main

import (
	"slices"
	"strings"
)

type entity struct {
	Name         string   `json:"name" description:"The name of the entity"`
	EntityType   string   `json:"entityType" description:"The type of the entity"`
	Observations []string `json:"observations" description:"An array of observation contents associated with the entity"`
}

type relation struct {
	From         string `json:"from" description:"The name of the entity where the relation starts"`
	To           string `json:"to" description:"The name of the entity where the relation ends"`
	RelationType string `json:"relationType" description:"The type of the relation"`
}

// graph is what a reader is given.
type graph struct {
	Entities  []entity   `json:"entities"`
	Relations []relation `json:"relations"`
}

// part returns the entities that keep accepts, and the relations that lead to
// or from one of them.
func (f *file) part(keep func(entity) bool) graph {
	g := graph{Entities: []entity{}, Relations: []relation{}}
	names := map[string]bool{}
	for _, l := range f.lines {
		if l.entity != nil && keep(*l.entity) {
			g.Entities = append(g.Entities, *l.entity)
			names[l.entity.Name] = true
		}
	}
	for _, l := range f.lines {
		if l.relation != nil && (names[l.relation.From] || names[l.relation.To]) {
			g.Relations = append(g.Relations, *l.relation)
		}
	}
	return g
}

// all returns the whole graph, relations of missing entities too.
func (f *file) all() graph {
	g := f.part(func(entity) bool { return true })
	g.Relations = []relation{}
	for _, l := range f.lines {
		if l.relation != nil {
			g.Relations = append(g.Relations, *l.relation)
		}
	}
	return g
}

// entity returns the line of the first entity of that name; nil without one.
func (f *file) entity(name string) *line {
	for _, l := range f.lines {
		if l.entity != nil && l.entity.Name == name {
			return l
		}
	}
	return nil
}

func (f *file) hasRelation(r relation) bool {
	return slices.ContainsFunc(f.lines, func(l *line) bool { return l.relation != nil && *l.relation == r })
}

// remove drops the lines that gone names and returns how many.
func (f *file) remove(gone func(*line) bool) int {
	before := len(f.lines)
	f.lines = slices.DeleteFunc(f.lines, gone)
	return before - len(f.lines)
}

// matches reports whether the query is in the entity, in any case of letters.
func (e entity) matches(query string) bool {
	query = strings.ToLower(query)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), query) }
	return has(e.Name) || has(e.EntityType) || slices.ContainsFunc(e.Observations, has)
}
