package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

type entities struct {
	Entities []entity `json:"entities"`
}

// createEntities skips names that are taken.
func createEntities(_ *sdk.Call, in entities) (entities, error) {
	out := entities{[]entity{}}
	return out, change(func(f *file) error {
		for _, e := range in.Entities {
			if f.entity(e.Name) != nil {
				continue
			}
			if err := f.addEntity(e); err != nil {
				return err
			}
			out.Entities = append(out.Entities, e)
		}
		return nil
	})
}

type relations struct {
	Relations []relation `json:"relations"`
}

// createRelations skips relations that are there.
func createRelations(_ *sdk.Call, in relations) (relations, error) {
	out := relations{[]relation{}}
	return out, change(func(f *file) error {
		for _, r := range in.Relations {
			for _, end := range []string{r.From, r.To} {
				if f.entity(end) == nil {
					return missing(end)
				}
			}
			if f.hasRelation(r) {
				continue
			}
			if err := f.addRelation(r); err != nil {
				return err
			}
			out.Relations = append(out.Relations, r)
		}
		return nil
	})
}

type observationsInput struct {
	Observations []struct {
		EntityName string   `json:"entityName" description:"The name of the entity to add the observations to"`
		Contents   []string `json:"contents" description:"An array of observation contents to add"`
	} `json:"observations"`
}

type addedObservations struct {
	Results []added `json:"results"`
}

type added struct {
	EntityName        string   `json:"entityName"`
	AddedObservations []string `json:"addedObservations"`
}

// addObservations skips those that the entity has.
func addObservations(_ *sdk.Call, in observationsInput) (addedObservations, error) {
	out := addedObservations{[]added{}}
	return out, change(func(f *file) error {
		for _, o := range in.Observations {
			l := f.entity(o.EntityName)
			if l == nil {
				return missing(o.EntityName)
			}
			fresh := []string{}
			for _, c := range o.Contents {
				if !slices.Contains(l.entity.Observations, c) {
					fresh = append(fresh, c)
				}
			}
			if err := l.add(fresh); err != nil {
				return err
			}
			out.Results = append(out.Results, added{o.EntityName, fresh})
		}
		return nil
	})
}

// add adds observations to the entity of a line.
func (l *line) add(observations []string) error {
	if len(observations) == 0 {
		return nil
	}
	all := slices.Clone(l.observations)
	for _, o := range observations {
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		all = append(all, text)
	}
	return l.observe(all)
}

func missing(name string) error { return fmt.Errorf("entity %s: not found", name) }

// change loads the graph, applies f to it and saves it; where f fails, nothing is
// saved.
func change(f func(*file) error) error {
	g, err := load()
	if err != nil {
		return err
	}
	if err := f(g); err != nil {
		return err
	}
	return g.save()
}
