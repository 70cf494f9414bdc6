package landlock_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/landlock"
	"parley/tools/sandbox/probe"
	"parley/tools/sandbox/seccomp"
)

// inContainer is a variable of the environment of a process that runs as in a container.
const inContainer = "PARLEY_TEST_CONTAINER"

// R-S16: where namespaces are forbidden, as by Docker's seccomp profile, Landlock holds.
func TestContainer(t *testing.T) {
	if os.Getenv(inContainer) != "" {
		if unix.Unshare(unix.CLONE_NEWUSER) == nil {
			t.Fatal("this is no container: a user namespace could be made")
		}
		attempts, err := probe.Run(t.Context(), landlock.New())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range attempts {
			if !a.Held {
				t.Errorf("%s: %s", a.Name, a.Detail)
			}
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // the thread that is confined ends with this function
		defer close(done)
		runtime.LockOSThread()
		if err := confineAsDocker(); err != nil {
			t.Error(err)
			return
		}
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestContainer$")
		cmd.Env = append(os.Environ(), inContainer+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	<-done
}

// confineAsDocker forbids this thread what Docker forbids in containers.
func confineAsDocker() error {
	code := seccomp.Isolated()
	program := unix.SockFprog{
		Len:    uint16(len(code) / unix.SizeofSockFilter),
		Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0])),
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
