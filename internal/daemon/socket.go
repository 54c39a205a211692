package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gofrs/flock"
)

// maxSocketPath is how long the path of a socket may be (sun_path of unix(7),
// the shorter one of the BSDs).
const maxSocketPath = 103

// socketPath returns where the daemon of a state folder is reached. A path that
// is too long for a socket gets a short one in the folder for temporary files.
func socketPath(state string) (string, error) {
	abs, err := filepath.Abs(state)
	if err != nil {
		return "", err
	}
	if path := filepath.Join(abs, "daemon.sock"); len(path) <= maxSocketPath {
		return path, nil
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(os.TempDir(), "sandboxd-"+strconv.Itoa(os.Getuid()), hex.EncodeToString(sum[:16])), nil
}

// checkPrivate refuses a folder that others may write to: they could put a
// socket of theirs there.
func checkPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ownedByUser(info) {
		return fmt.Errorf("folder %s: others may write to it", dir)
	}
	return nil
}

// errHeld: another daemon of the same state folder has the socket.
var errHeld = errors.New("another daemon has the local socket of this state folder")

// bindSocket listens on the socket of a state folder. The lock beside it tells
// a socket that is in use from what a killed process left.
func bindSocket(state string) (_ net.Listener, release func(), err error) {
	path, err := socketPath(state)
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, fmt.Errorf("local socket: %w", err)
	}
	if err := checkPrivate(filepath.Dir(path)); err != nil {
		return nil, nil, fmt.Errorf("local socket: %w", err)
	}
	lock := flock.New(path + ".lock")
	held, err := lock.TryLock()
	if err != nil {
		return nil, nil, fmt.Errorf("local socket: %w", err)
	}
	if !held {
		return nil, nil, errHeld
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errors.Join(fmt.Errorf("local socket: %w", err), lock.Unlock())
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("local socket: %w", err), lock.Unlock())
	}
	// The folder keeps others out already.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("local socket: %w", err), l.Close(), lock.Unlock())
	}
	return l, func() {
		l.Close()
		lock.Unlock()
	}, nil
}
