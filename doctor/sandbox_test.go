package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"parley/tools/sandbox"
)

// What an owner reads about sandboxes: what is used, how each did, and the command that mends what does not hold.
func TestSandbox(t *testing.T) {
	held := func(driver string) sandbox.Report {
		return sandbox.Report{Driver: driver, Attempts: []sandbox.Attempt{{Name: "read a hidden file", Held: true}}}
	}
	failed := func(driver string, err error) sandbox.Report {
		return sandbox.Report{Driver: driver, Err: err, Advice: "advice for " + driver}
	}
	leaky := sandbox.Report{Driver: "bwrap", Advice: "advice for bwrap", Attempts: []sandbox.Attempt{
		{Name: "read a hidden file", Held: true}, {Name: "connect to this machine", Detail: "it worked"},
	}}
	denied := errors.New("No permissions to create new namespace")
	exhausted := errors.New("bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)")
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	kernel := func(name, value string) fstest.MapFS { return fstest.MapFS{"proc/sys/" + name: file(value)} }
	for _, c := range []struct {
		name   string
		choice sandbox.Choice
		err    error
		root   fstest.MapFS
		uid    int
		status Status
		text   string // a part of it
		advice string // the beginning; "" if there is none
	}{
		{name: "both hold", choice: sandbox.Choice{Driver: "bwrap", Reports: []sandbox.Report{held("bwrap"), held("landlock")}},
			status: OK, text: "the programs of models run in bwrap\nbwrap: 1 of 1 attempts to get out failed, as they should\nlandlock: 1 of 1"},
		{name: "the weaker one fails", choice: sandbox.Choice{Driver: "bwrap", Reports: []sandbox.Report{held("bwrap"), failed("landlock", denied)}},
			status: OK, text: "\nlandlock: No permissions"},
		{name: "bwrap is missing", choice: sandbox.Choice{Driver: "landlock", Reports: []sandbox.Report{
			failed("bwrap", errors.New("bwrap (bubblewrap) is not installed")), held("landlock"),
		}}, status: Warn, text: "run in landlock\nbwrap: bwrap (bubblewrap) is not installed\n", advice: "bwrap: sudo apt-get install bubblewrap"},
		{name: "AppArmor", choice: sandbox.Choice{Driver: "landlock", Reports: []sandbox.Report{failed("bwrap", denied), held("landlock")}}, uid: 1000,
			root: kernel("kernel/apparmor_restrict_unprivileged_userns", "1"), status: Warn, text: "run in landlock",
			advice: "bwrap: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{name: "AppArmor does not keep root from it", choice: sandbox.Choice{Driver: "landlock", Reports: []sandbox.Report{failed("bwrap", denied), held("landlock")}},
			root: kernel("kernel/apparmor_restrict_unprivileged_userns", "1"), status: Warn, text: "run in landlock", advice: "bwrap: advice for bwrap"},
		{name: "Debian's switch", choice: sandbox.Choice{Driver: "landlock", Reports: []sandbox.Report{failed("bwrap", denied), held("landlock")}}, uid: 1000,
			root: kernel("kernel/unprivileged_userns_clone", "0"), status: Warn, text: "run in landlock", advice: "bwrap: sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{name: "no namespaces", choice: sandbox.Choice{Driver: "landlock", Reports: []sandbox.Report{failed("bwrap", denied), held("landlock")}}, uid: 1000,
			root: kernel("user/max_user_namespaces", "0"), status: Warn, text: "run in landlock", advice: "bwrap: sudo sysctl -w user.max_user_namespaces="},
		{name: "few namespaces, in a container", choice: sandbox.Choice{Driver: "landlock", Reports: []sandbox.Report{failed("bwrap", exhausted), held("landlock")}},
			root: fstest.MapFS{".dockerenv": file(""), "proc/sys/user/max_user_namespaces": file("2147483647")}, status: Warn, text: "run in landlock", advice: "bwrap: sudo sysctl -w user.max_user_namespaces="},
		{name: "in a container", choice: sandbox.Choice{Driver: "landlock", Reports: []sandbox.Report{failed("bwrap", denied), held("landlock")}},
			root: fstest.MapFS{".dockerenv": file("")}, status: Warn, text: "run in landlock", advice: "bwrap: start the container with --security-opt seccomp=unconfined"},
		{name: "bwrap lets something through", choice: sandbox.Choice{Driver: "landlock", Reports: []sandbox.Report{leaky, held("landlock")}},
			status: Warn, text: "\nbwrap does not hold: connect to this machine (it worked)\n", advice: "bwrap: advice for bwrap"},
		{name: "nothing holds", choice: sandbox.Choice{Reports: []sandbox.Report{failed("bwrap", errors.New("bwrap is not installed")), failed("landlock", denied)}},
			root:   fstest.MapFS{"proc/sys/kernel/osrelease": file("6.12.1-13-amd64"), "sys/kernel/security/lsm": file("lockdown,capability,yama")},
			status: Warn, text: "none holds on this machine, so models can run no programs\nbwrap: ",
			advice: "bwrap: sudo apt-get install bubblewrap\nlandlock: boot the kernel with lsm=landlock,lockdown,capability,yama"},
		{name: "the one that config names does not hold, another would", choice: sandbox.Choice{Reports: []sandbox.Report{failed("bwrap", denied), held("landlock")}},
			status: Warn, text: "the one that config names does not hold on this machine, so models can run no programs\nbwrap: ",
			advice: "bwrap: advice for bwrap\nor set tools.exec.sandbox to \"auto\", which takes landlock here"},
		{name: "an old kernel", choice: sandbox.Choice{Reports: []sandbox.Report{failed("landlock", denied)}},
			root: kernel("kernel/osrelease", "5.10.0-26-amd64"), status: Warn, text: "none holds", advice: `landlock: a kernel from 5.13 on; this one is "5.10.0-26-amd64"`},
		{name: "Landlock is there, and fails", choice: sandbox.Choice{Reports: []sandbox.Report{failed("landlock", denied)}},
			root:   fstest.MapFS{"proc/sys/kernel/osrelease": file("7.0.0"), "sys/kernel/security/lsm": file("capability,landlock,yama")},
			status: Warn, text: "none holds", advice: "landlock: advice for landlock"},
		{name: "none, as config says", choice: sandbox.Choice{Driver: "none", Bare: true, Reports: []sandbox.Report{failed("bwrap", denied), held("landlock")}},
			status: Warn, text: "none, as config says: the programs of models may do all that Parley may", advice: `set tools.exec.sandbox to "auto"`},
		{name: "no time", err: context.DeadlineExceeded, status: Warn, text: "not found out in time", advice: "run this again"},
	} {
		s := Sandbox{
			Examine: func(context.Context) (sandbox.Choice, error) { return c.choice, c.err },
			Root:    c.root, UID: c.uid,
		}
		if c.root == nil {
			s.Root = fstest.MapFS{}
		}
		f := s.Check(t.Context())
		if f.Status != c.status || !strings.Contains(f.Text, c.text) || !strings.HasPrefix(f.Advice, c.advice) || (f.Advice == "") != (c.advice == "") {
			t.Errorf("%s: %s\n%s\n-> %s", c.name, f.Status, f.Text, f.Advice)
		}
	}
}
