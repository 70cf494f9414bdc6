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

// Running reports whether a gateway serves socket.
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

// maxSocketPath leaves room for the temporary name of a socket: systems allow 104
// bytes or a few more.
const maxSocketPath = 95 // bytes

// Socket returns the path of the socket on which the gateway with that data folder serves terminals.
func Socket(dataDir string) string { return filepath.Join(dataDir, "parley.sock") }

// Listen creates a socket at path, which is removed when the listener is closed.
// It replaces a socket that a dead process left behind, even another user's, but
// not one that is being served. Only the owner can open the socket at any time:
// it is created in a private directory and moved to path once its mode is set.
// The caller holds the lock of the data folder.
func Listen(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket: path %s is too long: use a data folder with a shorter name", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("socket: %s exists and is not a socket", path)
	}
	conn, err := Dial(context.Background(), path)
	switch {
	case err == nil:
		conn.Close()
		return nil, fmt.Errorf("socket: another gateway serves %s", path)
	case errors.Is(err, syscall.EACCES): // left by a process of another user, which is dead: it does not hold the lock
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist): // its process may be alive
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
	made, err := os.Lstat(private)
	if err := errors.Join(err, os.Chmod(private, 0o600), os.Rename(private, path)); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return &listener{socket: l, path: path, made: made}, nil
}

// A listener removes its socket when it is closed, unless another one has
// replaced it.
type listener struct {
	socket *net.UnixListener
	path   string
	made   fs.FileInfo
}

func (l *listener) Accept() (net.Conn, error) { return l.socket.Accept() }
func (l *listener) Addr() net.Addr            { return l.socket.Addr() }

func (l *listener) Close() error {
	l.removeSocket()
	return l.socket.Close()
}

// removeSocket removes the socket, unless it is another listener's. The next Listen
// replaces what is left.
func (l *listener) removeSocket() {
	info, err := os.Lstat(l.path)
	if err != nil || !os.SameFile(info, l.made) {
		return
	}
	_ = os.Remove(l.path)
}
