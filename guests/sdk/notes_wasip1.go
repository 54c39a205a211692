//go:build wasip1

package sdk

//go:wasmimport sandboxd_mcp progress
func hostProgress(progress, total float64, message string) uint32

//go:wasmimport sandboxd_mcp log
func hostLog(level, text string) uint32

// notes: the host has them.
type notes struct{}

// note hands a message to the host. Whether it was delivered changes nothing for
// a tool.
func (c *Call) note(n Note) {
	if n.Level != "" {
		hostLog(n.Level, n.Text)
		return
	}
	hostProgress(n.Progress, n.Total, n.Message)
}
