// Package corpus holds the engine to the verdicts that package guests expects on
// the hints of public servers.
package corpus
