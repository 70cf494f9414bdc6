package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"parley/tools/sandbox"
)

// A Sandbox is what confines the programs that models choose.
type Sandbox struct {
	Examine func(context.Context) (sandbox.Choice, error)
	Root    fs.FS // this machine's files
	UID     int   // of who runs Parley
}

// Check tells which driver is used, how each of them did, and what would mend those that did not hold and are
// stronger than the one that is used.
func (s Sandbox) Check(ctx context.Context) Finding {
	choice, err := s.Examine(ctx)
	if err != nil {
		const advice = "run this again when the machine has less to do"
		return Finding{Warn, "it was not found out in time which one holds", advice}
	}
	f := Finding{Status: OK}
	lines := []string{"the programs of models run in " + choice.Driver}
	other := "" // that holds, where none is used
	if i := slices.IndexFunc(choice.Reports, sandbox.Report.Holds); choice.Driver == "" && i >= 0 {
		other = choice.Reports[i].Driver
	}
	var advice []string
	switch {
	case choice.Bare:
		f.Status = Warn
		lines[0] = "none, as config says: the programs of models may do all that Parley may, with all of its files"
		advice = append(advice, `set tools.exec.sandbox to "auto"`)
	case choice.Driver == "":
		f.Status = Warn
		lines[0] = "none holds on this machine, so models can run no programs"
		if other != "" {
			lines[0] = "the one that config names does not hold on this machine, so models can run no programs"
		}
	}
	better := !choice.Bare // reports go from the strongest down
	for _, r := range choice.Reports {
		better = better && r.Driver != choice.Driver
		lines = append(lines, r.String())
		if better && !r.Holds() {
			f.Status = Warn
			advice = append(advice, r.Driver+": "+s.mend(r))
		}
	}
	if other != "" {
		advice = append(advice, `or set tools.exec.sandbox to "auto", which takes `+other+" here")
	}
	f.Text = strings.Join(lines, "\n")
	f.Advice = strings.Join(advice, "\n")
	return f
}

// mend returns what makes the driver of r hold, as far as this machine tells why it does not.
func (s Sandbox) mend(r sandbox.Report) string {
	switch r.Driver {
	case "bwrap":
		return s.mendBwrap(r)
	case "landlock":
		return s.mendLandlock(r)
	}
	return r.Advice
}

// mendBwrap looks at what keeps bwrap from making namespaces.
func (s Sandbox) mendBwrap(r sandbox.Report) string {
	_, docker := fs.Stat(s.Root, ".dockerenv")
	_, podman := fs.Stat(s.Root, "run/.containerenv")
	switch {
	case r.Err != nil && strings.Contains(r.Err.Error(), "not installed"):
		return "sudo apt-get install bubblewrap"
	case s.UID != 0 && s.setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (a line in /etc/sysctl.d keeps it), " +
			"or an AppArmor profile that allows userns to /usr/bin/bwrap"
	case s.UID != 0 && s.setting("kernel/unprivileged_userns_clone") == "0":
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1 (a line in /etc/sysctl.d keeps it)"
	case s.setting("user/max_user_namespaces") == "0", r.Err != nil && strings.Contains(r.Err.Error(), "ENOSPC"):
		return "sudo sysctl -w user.max_user_namespaces=10000 (a line in /etc/sysctl.d keeps it)"
	case docker == nil || podman == nil:
		return "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined " +
			"--security-opt systempaths=unconfined; landlock needs none of this"
	}
	return r.Advice
}

// The first kernel with Landlock. What the Landlock of older ones lacks, the driver makes up for.
const (
	landlockMajor = 5
	landlockMinor = 13
)

// mendLandlock looks at what keeps the kernel from having Landlock.
func (s Sandbox) mendLandlock(r sandbox.Report) string {
	release := s.setting("kernel/osrelease")
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return r.Advice
	}
	if major < landlockMajor || major == landlockMajor && minor < landlockMinor {
		return "a kernel from 5.13 on; this one is " + strconv.Quote(release)
	}
	modules, err := fs.ReadFile(s.Root, "sys/kernel/security/lsm")
	list := strings.TrimSpace(string(modules))
	if err != nil || strings.Contains(","+list+",", ",landlock,") {
		return r.Advice
	}
	return "boot the kernel with lsm=landlock," + list +
		" (in GRUB_CMDLINE_LINUX of /etc/default/grub; then sudo update-grub)"
}

// setting returns a setting of the kernel; "" if there is none.
func (s Sandbox) setting(name string) string {
	value, _ := fs.ReadFile(s.Root, "proc/sys/"+name)
	return strings.TrimSpace(string(value))
}
