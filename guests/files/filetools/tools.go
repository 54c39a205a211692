// Package filetools has tools on the files of one volume. Four are those of the
// reference file server of the Model Context Protocol (npm's
// @modelcontextprotocol/server-filesystem 2026.8.31), with its arguments, answers
// and errors: read_text_file, list_directory, search_files and edit_file. What is
// not as there: names in another Unicode normal form are other names, and arguments
// that a tool does not have are refused.
package filetools

import "github.com/sandboxd/sandboxd/guests/sdk"

// root is where the volume is. It is a variable so that tests can move it.
var root = "/data"

// content is what the tools answer: the text is there twice, as the original has it.
type content struct {
	Content string `json:"content"`
}

// Text is the text of the result.
func (c content) Text() string { return c.Content }

// Register registers the tools.
func Register() {
	reads := func(title, description string) []sdk.Option {
		return []sdk.Option{sdk.Title(title), sdk.Description(description), sdk.ReadOnly(true), sdk.OpenWorld(false)}
	}
	sdk.Register(
		sdk.Tool("read_text_file", readTextFile, reads("Read Text File",
			"Read the complete contents of a file from the file system as text. Use the 'head' parameter to read only "+
				"the first N lines of a file, or the 'tail' parameter to read only the last N lines of a file. "+
				"Operates on the file as text regardless of extension. Only works within allowed directories.")...),
		sdk.Tool("list_directory", listDirectory, reads("List Directory",
			"Get a detailed listing of all files and directories in a specified path. Results clearly distinguish "+
				"between files and directories with [FILE] and [DIR] prefixes. Only works within allowed directories.")...),
		sdk.Tool("search_files", searchFiles, reads("Search Files",
			"Recursively search for files and directories matching a pattern. The patterns should be glob-style patterns "+
				"that match paths relative to the working directory. Use pattern like '*.ext' to match files in current "+
				"directory, and '**/*.ext' to match files in all subdirectories. Returns full paths to all matching items. "+
				"Only searches within allowed directories.")...),
		sdk.Tool("edit_file", editFile, sdk.Title("Edit File"), sdk.Description(
			"Make line-based edits to a text file. Each edit replaces exact line sequences with new content. Returns a "+
				"git-style diff showing the changes made. Only works within allowed directories."),
			sdk.ReadOnly(false), sdk.Destructive(true), sdk.Idempotent(false), sdk.OpenWorld(false)),
		sdk.Tool("echo", echo, reads("Echo", "Answers with its argument.")...),
	)
}

type echoInput struct {
	Text string `json:"text" description:"what to answer"`
}

func echo(_ *sdk.Call, in echoInput) (string, error) { return in.Text, nil }
