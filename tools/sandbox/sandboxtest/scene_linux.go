package sandboxtest

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// before is what the files of a probe have in them.
const before = "before"

// A plan says what there is to try.
type plan struct {
	Base    string // what the sandbox shows, read-only
	Work    string // a folder in it that may be changed
	Hidden  string // a file in it that is in a hidden folder
	Outside string // a file in no folder of the sandbox

	TCP, UDP       string // addresses of this machine where somebody listens
	Unix, Abstract string // sockets where somebody listens

	PID     int    // of the process that asked for the probe
	Started string // when that started
}

// standing are files that no program may be able to change, relative to the base of a plan.
var standing = []string{"AGENTS.md", "memory/MEMORY.md"}

// A result is what the program in the sandbox tells of one attempt.
type result struct {
	Name   string
	Held   bool
	Detail string
}

// tryToGetOut has a program in a sandbox try everything that must be impossible there.
func tryToGetOut(t *testing.T, s *suite) {
	scene := newScene(t)
	told, err := json.Marshal(scene.plan)
	if err != nil {
		t.Fatal(err)
	}
	out := s.run(t, sandbox.Spec{
		Args: []string{s.self, commandAttempts, string(told)},
		Dir:  scene.plan.Work,
		Folders: []sandbox.Folder{
			{Path: s.self, Access: sandbox.ReadOnly},
			{Path: scene.plan.Base, Access: sandbox.ReadOnly},
			{Path: scene.plan.Work, Access: sandbox.ReadWrite},
			{Path: filepath.Dir(scene.plan.Hidden), Access: sandbox.Hidden},
		},
	})
	found := map[string]result{}
	for decoder := json.NewDecoder(&out.stdout); ; {
		var one result
		if err := decoder.Decode(&one); err != nil {
			break
		}
		found[one.Name] = one
	}
	if len(found) == 0 {
		t.Fatalf("nothing was tried: %+v, %v: %s", out.outcome, out.err, out.stderr.String())
	}
	scene.judge(t, s, found)
}

// A scene is what a plan is about: files, and sockets that no program in the sandbox may reach.
type scene struct {
	plan    plan
	folders []string
	sockets map[string]socket // by the name of the attempt to reach them
}

// A socket is where somebody listens. wait waits until deadline for whoever has reached it.
type socket struct {
	io.Closer
	wait func(deadline time.Time) error
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{folders: []string{t.TempDir(), t.TempDir()}, sockets: map[string]socket{}}
	t.Cleanup(func() {
		for _, one := range s.sockets {
			_ = one.Close()
		}
	})
	if err := s.build(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) build() error {
	base, outside := s.folders[0], s.folders[1]
	s.plan = plan{
		Base:     base,
		Work:     filepath.Join(base, "work"),
		Hidden:   filepath.Join(base, "hidden", "file"),
		Outside:  filepath.Join(outside, "file"),
		Unix:     filepath.Join(outside, "socket"),
		Abstract: "@parley" + strings.ReplaceAll(outside, "/", "-"),
		PID:      os.Getpid(),
	}
	s.plan.Started, _ = startTime(s.plan.PID)
	for _, folder := range []string{s.plan.Work, filepath.Dir(s.plan.Hidden), filepath.Join(base, "memory")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
	}
	for _, file := range s.files() {
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			return err
		}
	}
	if err := os.Symlink(s.plan.Outside, filepath.Join(s.plan.Work, linkName)); err != nil {
		return err
	}
	return s.listen()
}

// linkName is a symbolic link in the folder that may be changed to a file outside.
const linkName = "link"

// files returns the files that no program in the sandbox may change.
func (s *scene) files() []string {
	all := []string{s.plan.Hidden, s.plan.Outside}
	for _, name := range standing {
		all = append(all, filepath.Join(s.plan.Base, name))
	}
	return all
}

// listen opens the sockets.
func (s *scene) listen() error {
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	s.plan.TCP = tcp.Addr().String()
	s.sockets[reachTCP] = socket{tcp, func(deadline time.Time) error {
		return accept(tcp, tcp.SetDeadline(deadline))
	}}
	for name, path := range map[string]string{reachUnix: s.plan.Unix, reachAbstract: s.plan.Abstract} {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		s.sockets[name] = socket{listener, func(deadline time.Time) error {
			return accept(listener, listener.SetDeadline(deadline))
		}}
	}
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	s.plan.UDP = udp.LocalAddr().String()
	s.sockets[reachUDP] = socket{udp, func(deadline time.Time) error {
		if err := udp.SetDeadline(deadline); err != nil {
			return err
		}
		_, _, err := udp.ReadFrom(make([]byte, 1))
		return err
	}}
	return nil
}

// accept takes the next connection of listener, whose deadline was set with the result err.
func accept(listener net.Listener, err error) error {
	if err != nil {
		return err
	}
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	return conn.Close()
}

// arrivalTimeout is how long is waited for what was sent to a socket before.
const arrivalTimeout = 20 * time.Millisecond

// judge looks at each attempt: at what the program told of it, and at what is seen from outside. A
// program may believe that it was refused what it has done.
func (s *scene) judge(t *testing.T, all *suite, told map[string]result) {
	t.Helper()
	for _, a := range attempts() {
		t.Run(a.name, func(t *testing.T) {
			all.skipExcepted(t)
			one, known := told[a.name]
			switch {
			case !known:
				t.Error("the program ended before it could tell")
			case s.reached(a.name):
				t.Error("it arrived")
			case !one.Held:
				t.Error("it worked")
			default:
				t.Log(one.Detail)
			}
		})
	}
	for _, file := range s.files() {
		content, err := os.ReadFile(file)
		if err != nil || string(content) != before {
			t.Errorf("%s has become %q, %v", filepath.Base(file), content, err)
		}
	}
}

// reached reports whether anything has come to the socket of the attempt of that name.
func (s *scene) reached(name string) bool {
	one, has := s.sockets[name]
	return has && one.wait(time.Now().Add(arrivalTimeout)) == nil
}
