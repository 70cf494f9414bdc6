package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Running says whether a gateway serves socket.
func Running(ctx context.Context, socket string) bool {
	conn, err := dial(ctx, socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func dial(ctx context.Context, path string) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = short(path, func(path string) error {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the gateway at %s: %w", path, cause(err))
	}
	return conn, nil
}

// listen makes the socket at path. One that a dead process left is replaced,
// one that is served is not. Only the owner may ever open it: it is made in a
// directory of its own and moved to path when its mode is right.
func listen(path string) (net.Listener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("console socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("console socket: %s is in the way: it is no socket", path)
	}
	conn, err := dial(context.Background(), path)
	switch {
	case err == nil:
		conn.Close()
		return nil, fmt.Errorf("console socket: another gateway serves %s", path)
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist): // it may be alive
		return nil, fmt.Errorf("console socket: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".socket")
	if err != nil {
		return nil, fmt.Errorf("console socket: %w", err)
	}
	defer os.RemoveAll(dir)
	var l *net.UnixListener
	err = short(filepath.Join(dir, "s"), func(name string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("console socket %s: %w", path, cause(err))
	}
	l.SetUnlinkOnClose(false)
	err = errors.Join(os.Chmod(filepath.Join(dir, "s"), 0o600), os.Rename(filepath.Join(dir, "s"), path))
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("console socket: %w", err)
	}
	return &listener{UnixListener: l, remove: sync.OnceFunc(func() { os.Remove(path) })}, nil
}

// A listener removes its socket when it is closed.
type listener struct {
	*net.UnixListener
	remove func()
}

func (l *listener) Close() error {
	l.remove()
	return l.UnixListener.Close()
}

// short calls use with a name of path that fits in a socket address, which
// holds 107 bytes on Linux.
func short(path string, use func(string) error) error {
	if len(path) <= 100 {
		return use(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// cause takes the name that short made up out of err.
func cause(err error) error {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return no
	}
	return err
}
