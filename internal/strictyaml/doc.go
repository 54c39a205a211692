// Package strictyaml reads YAML and JSON that people or strangers wrote, so that
// there is one way to read them: keys that are there twice, anchors, tags and
// unknown fields are errors, each with file, line, column and mend. Documents are
// bounded, so that none costs much to refuse.
package strictyaml
