// Package crash holds calls to being transactions, through the whole engine: with
// several writers at once, with faults at every step of a commit, and with
// processes and servers that are killed. It holds tests only, and the tool that
// they call in the folder guest.
package crash
