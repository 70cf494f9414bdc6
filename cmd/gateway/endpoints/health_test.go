package endpoints

import (
	"net"
	"strings"
	"testing"

	"parley/store/mem"
)

// health checks what CheckHealth says of the gateway with that data folder: "" if it is well.
func health(t *testing.T, dir, want string) {
	t.Helper()
	err := CheckHealth(t.Context(), dir)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("CheckHealth = %v, want %q", err, want)
	}
}

// A gateway is well as long as it answers and reaches the servers of its store, whether it stands by or not.
func TestHealth(t *testing.T) {
	const noConnection = "cannot reach the servers of its store: there is no connection"
	s := newShared()
	waits, answers := folder(t), folder(t)
	_, end := standBy(t, s, Config{DataDir: waits, Page: "127.0.0.1:0"})
	servers, err := NewServers(Config{DataDir: answers}, nil, s, false)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, servers)
	for _, dir := range []string{waits, answers} {
		health(t, dir, "")
		s.setDown(true)
		health(t, dir, noConnection)
		s.setDown(false)
		health(t, dir, "")
	}
	end()
	health(t, waits, "no gateway runs with the data in "+waits)
}

// A gateway whose store is of one machine is well as long as it answers.
func TestHealthAlone(t *testing.T) {
	dir := folder(t)
	servers, err := NewServers(Config{DataDir: dir}, nil, mem.New(), false)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, servers)
	health(t, dir, "")
}

// What does not answer in time is not well.
func TestHealthSilent(t *testing.T) {
	dir := folder(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", healthSocket(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	health(t, dir, "does not answer within 5s: it stands still")
}
