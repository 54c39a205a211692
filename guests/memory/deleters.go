package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sandboxd/sandboxd/guests/sdk"
)

type done struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

type deleteEntitiesInput struct {
	EntityNames []string `json:"entityNames" description:"An array of entity names to delete"`
}

// deleteEntities deletes entities and the relations that lead to or from them.
func deleteEntities(_ *sdk.Call, in deleteEntitiesInput) (done, error) {
	out := done{true, "Entities deleted successfully"}
	return out, change(func(f *file) error {
		var absent []string
		for _, name := range in.EntityNames {
			if f.entity(name) == nil {
				absent = append(absent, name)
			}
		}
		f.remove(func(l *line) bool {
			return l.entity != nil && slices.Contains(in.EntityNames, l.entity.Name) ||
				l.relation != nil && (slices.Contains(in.EntityNames, l.relation.From) || slices.Contains(in.EntityNames, l.relation.To))
		})
		if len(absent) > 0 {
			n := len(in.EntityNames)
			out.Message = fmt.Sprintf("Deleted %d of %d entities. Not found: %s", n-len(absent), n, strings.Join(absent, ", "))
		}
		return nil
	})
}

type deleteObservationsInput struct {
	Deletions []struct {
		EntityName   string   `json:"entityName" description:"The name of the entity containing the observations"`
		Observations []string `json:"observations" description:"An array of observations to delete"`
	} `json:"deletions"`
}

func deleteObservations(_ *sdk.Call, in deleteObservationsInput) (done, error) {
	out := done{true, "Observations deleted successfully"}
	return out, change(func(f *file) error {
		requested, deleted, absent := 0, 0, []string{}
		for _, d := range in.Deletions {
			requested += len(d.Observations)
			l := f.entity(d.EntityName)
			if l == nil {
				absent = append(absent, d.EntityName)
				continue
			}
			kept := []json.RawMessage{}
			for i, o := range l.entity.Observations {
				if !slices.Contains(d.Observations, o) {
					kept = append(kept, l.observations[i])
				}
			}
			n := len(l.observations) - len(kept)
			if n == 0 {
				continue
			}
			deleted += n
			if err := l.observe(kept); err != nil {
				return err
			}
		}
		if deleted != requested {
			out.Message = fmt.Sprintf("Deleted %d of %d observations.", deleted, requested)
		}
		if deleted != requested && len(absent) > 0 {
			out.Message += " Entities not found: " + strings.Join(absent, ", ")
		}
		return nil
	})
}

type deleteRelationsInput struct {
	Relations []relation `json:"relations" description:"An array of relations to delete"`
}

func deleteRelations(_ *sdk.Call, in deleteRelationsInput) (done, error) {
	out := done{true, "Relations deleted successfully"}
	return out, change(func(f *file) error {
		n := f.remove(func(l *line) bool { return l.relation != nil && slices.Contains(in.Relations, *l.relation) })
		if n != len(in.Relations) {
			out.Message = fmt.Sprintf("Deleted %d of %d relations. The rest matched nothing.", n, len(in.Relations))
		}
		return nil
	})
}
