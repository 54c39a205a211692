// Command memory keeps a knowledge graph: entities with observations, and
// relations between them. Its tools are those of the reference memory server of
// the Model Context Protocol (server-memory 2026.8.31), with the same hints. That
// server rewrites its file from the fields it knows and so loses the others,
// although it declares that it only adds; this one keeps them.
package main

import "github.com/sandboxd/sandboxd/guests/sdk"

func main() { sdk.Main() }

// adds declares a tool that only adds to the graph.
func adds(title, description string) []sdk.Option {
	return hints(title, description, false, false, false)
}

// deletes declares a tool that removes from the graph; what is gone is gone,
// however often it is asked for.
func deletes(title, description string) []sdk.Option {
	return hints(title, description, false, true, true)
}

func reads(title, description string) []sdk.Option {
	return hints(title, description, true, false, true)
}

func hints(title, description string, readOnly, destructive, idempotent bool) []sdk.Option {
	return []sdk.Option{
		sdk.Title(title), sdk.Description(description),
		sdk.ReadOnly(readOnly), sdk.Destructive(destructive), sdk.Idempotent(idempotent), sdk.OpenWorld(false),
	}
}

func init() {
	sdk.Register(
		sdk.Tool("create_entities", createEntities,
			adds("Create Entities", "Create multiple new entities in the knowledge graph")...),
		sdk.Tool("create_relations", createRelations,
			adds("Create Relations", "Create multiple new relations between entities in the knowledge graph. Relations should be in active voice")...),
		sdk.Tool("add_observations", addObservations,
			adds("Add Observations", "Add new observations to existing entities in the knowledge graph")...),
		sdk.Tool("delete_entities", deleteEntities,
			deletes("Delete Entities", "Delete multiple entities and their associated relations from the knowledge graph")...),
		sdk.Tool("delete_observations", deleteObservations,
			deletes("Delete Observations", "Delete specific observations from entities in the knowledge graph")...),
		sdk.Tool("delete_relations", deleteRelations,
			deletes("Delete Relations", "Delete multiple relations from the knowledge graph")...),
		sdk.Tool("read_graph", readGraph,
			reads("Read Graph", "Read the entire knowledge graph")...),
		sdk.Tool("search_nodes", searchNodes,
			reads("Search Nodes", "Search for nodes in the knowledge graph based on a query")...),
		sdk.Tool("open_nodes", openNodes,
			reads("Open Nodes", "Open specific nodes in the knowledge graph by their names")...),
	)
}
