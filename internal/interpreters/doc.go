// Package interpreters tests the interpreters for tools in JavaScript and Python: the
// packages guests/javascript and guests/python, with what guests/interpreters.sh
// installs.
package interpreters
