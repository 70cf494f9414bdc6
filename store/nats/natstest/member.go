package natstest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"parley/store/storetest"
)

// FreePorts returns the numbers of ports on which nobody listens.
func FreePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for range n {
		l := Listen(t)
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// AddressOf returns the address of servers on these ports.
func AddressOf(ports []int) (address string) {
	for i, port := range ports {
		if i > 0 {
			address += ","
		}
		address += fmt.Sprint("nats://127.0.0.1:", port)
	}
	return address
}

// MemberOptions are those of server i of a cluster that has these ports. Clients know of no other servers than they were
// told of.
func MemberOptions(i int, dir string, clients, routes []int) *server.Options {
	o := &server.Options{
		ServerName: fmt.Sprint("server", i),
		Host:       "127.0.0.1",
		Port:       clients[i],
		JetStream:  true,
		StoreDir:   dir,
		Cluster:    server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: routes[i], NoAdvertise: true},
	}
	for _, port := range routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	return o
}

// memberEnv has what Serve is told if the program of a test is to be a Member.
const memberEnv = "PARLEY_NATS_MEMBER"

// Serve is a Member until it is killed, or whoever started it ends, if this process is to be one: TestMain of a package
// whose tests use Members begins with it, and returns if it reports true.
func Serve() bool {
	args := os.Getenv(memberEnv)
	if args == "" {
		return false
	}
	if err := serveMember(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func serveMember(args string) error {
	var i int
	var dir string
	clients, routes := make([]int, 3), make([]int, 3)
	_, err := fmt.Sscan(args, &i, &dir, &clients[0], &clients[1], &clients[2], &routes[0], &routes[1], &routes[2])
	if err != nil {
		return err
	}
	o := MemberOptions(i, dir, clients, routes)
	o.NoSigs = true
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A Member is a server of a cluster in a process of its own.
type Member struct {
	Port  int // for clients
	args  string
	cmd   *exec.Cmd
	stdin io.Closer
}

// StartMembers starts a cluster of three, which end with the test.
func StartMembers(t testing.TB) (members []*Member) {
	t.Helper()
	clients, routes := FreePorts(t, 3), FreePorts(t, 3)
	ports := strings.Trim(fmt.Sprint(append(clients[:3:3], routes...)), "[]")
	for i := range 3 {
		m := &Member{Port: clients[i], args: fmt.Sprint(i, " ", storetest.TempDir(t), " ", ports)}
		m.Start(t)
		t.Cleanup(m.Kill)
		members = append(members, m)
	}
	return members
}

// Start starts the server again.
func (m *Member) Start(t testing.TB) {
	t.Helper()
	m.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // Kill ends it
	m.cmd.Env = append(os.Environ(), memberEnv+"="+m.args, "GORACE=atexit_sleep_ms=0")
	stdin, err := m.cmd.StdinPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	m.stdin = stdin
}

// Kill ends the server without a warning.
func (m *Member) Kill() {
	_ = m.cmd.Process.Kill() // it may have ended
	_ = m.cmd.Wait()
	_ = m.stdin.Close()
}
