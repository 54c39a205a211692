package wasi

import "testing"

func TestErrnoNames(t *testing.T) {
	for e, want := range map[Errno]string{
		Success: "success", EACCES: "EACCES", EEXIST: "EEXIST", ENOENT: "ENOENT", ENOSYS: "ENOSYS",
		58: "ENOTSUP", EPERM: "EPERM", 69: "EROFS", ELOOP: "ELOOP", ENOTCAPABLE: "ENOTCAPABLE", 77: "errno 77",
	} {
		if e.String() != want {
			t.Errorf("%d: got %s, want %s", uint32(e), e, want)
		}
	}
	if Success.Err() != nil || EACCES.Err() == nil {
		t.Error("Err confuses success and failure")
	}
}
