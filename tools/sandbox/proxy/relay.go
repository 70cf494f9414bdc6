package proxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// RelayCommand is the hidden command of Parley that runs Relay.
const RelayCommand = "sandbox-relay"

// port is where programs find their proxy. It is always the same, so that a shell that keeps its environment
// finds the next one, too.
const port = 3128

// What Relay ends with if it cannot run the program, as shells do.
const (
	exitRelay         = 125
	exitNotExecutable = 126
	exitNotFound      = 127
)

// RelayArgs returns the arguments with which Parley's binary runs args in the sandbox, where fd is what became
// of Proxy.File.
func RelayArgs(fd int, args []string) []string {
	return append([]string{RelayCommand, strconv.Itoa(fd), "--"}, args...)
}

// Relay runs in the sandbox, with what follows RelayCommand. It opens the socket on which the program reaches its
// proxy, hands it over, and becomes the program. It returns an exit code only if that fails.
func Relay(args []string) int {
	if len(args) < 3 || args[1] != "--" {
		return failRelay(exitRelay, errors.New("this command is for Parley itself"))
	}
	program := args[2:]
	fd, err := strconv.Atoi(args[0])
	if err != nil {
		return failRelay(exitRelay, err)
	}
	if err := openPort(fd); err != nil {
		return failRelay(exitRelay, err)
	}
	path, err := exec.LookPath(program[0])
	if err != nil {
		return failRelay(exitNotFound, err)
	}
	err = syscall.Exec(path, program, withProxy(os.Environ()))
	return failRelay(exitNotExecutable, fmt.Errorf("run %s: %w", path, err))
}

func failRelay(code int, err error) int {
	fmt.Fprintln(os.Stderr, "sandbox:", err)
	return code
}

// withProxy returns environ with the variables by which programs find a proxy, unless they have values. What is
// in the sandbox is reached without it.
func withProxy(environ []string) []string {
	address := "http://127.0.0.1:" + strconv.Itoa(port)
	const local = "localhost,127.0.0.1,::1"
	for _, v := range [][2]string{
		{"http_proxy", address}, {"https_proxy", address}, {"all_proxy", address}, {"no_proxy", local},
	} {
		for _, name := range []string{v[0], strings.ToUpper(v[0])} {
			has := func(s string) bool { return strings.HasPrefix(s, name+"=") }
			if !slices.ContainsFunc(environ, has) {
				environ = append(environ, name+"="+v[1])
			}
		}
	}
	return environ
}

// openHandover opens the pair of sockets by which Relay hands over its listening socket.
func (p *Proxy) openHandover() error {
	fds, err := socketPair()
	if err != nil {
		return err
	}
	ours := os.NewFile(uintptr(fds[0]), "proxy")
	defer ours.Close()
	p.child = os.NewFile(uintptr(fds[1]), "program")
	conn, err := net.FileConn(ours)
	if err != nil {
		p.child.Close()
		return err
	}
	p.handover = conn.(*net.UnixConn)
	return nil
}

// socketPair returns two sockets that are connected. No process inherits them by accident.
func socketPair() (fds [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return fds, err
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	return fds, nil
}

// receiveListener waits for the socket that sendListener sends. An error means that there is nobody left who
// could send one, or that conn was closed.
func receiveListener(conn *net.UnixConn) (net.Listener, error) {
	rights := make([]byte, syscall.CmsgSpace(4)) // one file descriptor
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return nil, err
	}
	if len(messages) != 1 {
		return nil, errors.New("the relay ended before it sent its socket")
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fds[0]), "listener")
	defer file.Close()
	return net.FileListener(file)
}

// openPort opens the port of the proxy on the loopback interface and hands it over through the socket fd. Both
// are closed, so that the program has neither.
func openPort(fd int) error {
	defer syscall.Close(fd)
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return fmt.Errorf("open the socket of the proxy: %w", err)
	}
	defer syscall.Close(listener)
	address := &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	if err := syscall.Bind(listener, address); err != nil {
		return fmt.Errorf("open the port of the proxy: %w", err)
	}
	if err := syscall.Listen(listener, maxConnections); err != nil {
		return fmt.Errorf("listen at the port of the proxy: %w", err)
	}
	return sendListener(fd, listener)
}

// sendListener sends the socket listener over the socket fd.
func sendListener(fd, listener int) error {
	if err := syscall.Sendmsg(fd, []byte{0}, syscall.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("hand over the socket of the proxy: %w", err)
	}
	return nil
}
