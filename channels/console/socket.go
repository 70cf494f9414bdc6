package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Running says whether a gateway serves socket.
func Running(ctx context.Context, socket string) bool {
	conn, err := Dial(ctx, socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// Dial connects to the socket at path, within five seconds.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to the gateway: %w", err)
	}
	return conn, nil
}

// longest is what a socket's path may have, in bytes, with some to spare: the
// limit is 104 or a few more.
const longest = 95

// Listen makes the socket at path. One that a dead process left is replaced,
// one that is served is not. Only the owner may ever open it: it is made in a
// directory of its own and moved to path when its mode is right.
func Listen(path string) (*net.UnixListener, error) {
	if len(path) > longest {
		return nil, fmt.Errorf("socket: %s is too long for the path of a socket: use a data folder with a shorter name", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("socket: %s is in the way: it is no socket", path)
	}
	conn, err := Dial(context.Background(), path)
	switch {
	case err == nil:
		conn.Close()
		return nil, fmt.Errorf("socket: another gateway serves %s", path)
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist): // it may be alive
		return nil, fmt.Errorf("socket: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	defer os.RemoveAll(dir)
	private := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: private, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(private, 0o600), os.Rename(private, path)); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}
