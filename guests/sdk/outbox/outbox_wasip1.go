//go:build wasip1

package outbox

//go:wasmimport sandboxd_outbox send
func hostSend(host, method, path, contentType, key string, body *byte, size uint32) uint32

// The answers of the host that mean something here (docs/abi.md, sandboxd_outbox).
const (
	success = 0
	eACCES  = 2
	eFBIG   = 22
	eINVAL  = 28
	eNOBUFS = 42
	eNOSPC  = 51
	eNOTSUP = 58
)

// Send hands a message over. It is delivered once the call has ended well. A
// message with a key that was sent before is taken and not sent again.
func Send(m Message) error {
	if m.Method == "" {
		m.Method = "POST"
	}
	if m.Path == "" {
		m.Path = "/"
	}
	var body *byte
	if len(m.Body) > 0 {
		body = &m.Body[0]
	}
	switch e := hostSend(m.Host, m.Method, m.Path, m.ContentType, m.Key, body, uint32(len(m.Body))); e {
	case success:
		return nil
	case eACCES:
		return ErrDenied
	case eFBIG:
		return ErrTooLarge
	case eINVAL:
		return ErrMessage
	case eNOBUFS:
		return ErrTooMany
	case eNOSPC:
		return ErrFull
	case eNOTSUP:
		return ErrNoCall
	default:
		return Errno(e)
	}
}
