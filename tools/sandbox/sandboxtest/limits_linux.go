package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// eat takes memory and keeps it.
func eat(args []string) int {
	size, err := strconv.Atoi(args[0])
	if err != nil {
		return 2
	}
	food := make([]byte, size)
	for i := 0; i < len(food); i += os.Getpagesize() {
		food[i] = 1
	}
	fmt.Println("full")
	time.Sleep(time.Minute)
	return int(food[0])
}

// These have processes that fork as fast as they can, each in a session of its own, and not for ever,
// for the sake of the machine. Of fleas there are always twenty: each forks and ends.
const (
	fleas = `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		perl -MPOSIX=setsid,_exit -e '$end = time + 60; while (time < $end) { $p = fork; _exit(0) if $p; setsid }' &
	done; sleep 0.2`
	swarm = `perl -MPOSIX=setsid -e '$end = time + 60;
		while (time < $end) { $p = fork; setsid if defined $p && !$p; select undef, undef, undef, 0.001 if !defined $p }'`
)

// bomb has processes double twelve times, and not for ever, for the sake of the machine.
const bomb = `b() { [ $1 -gt 0 ] && { b $(($1-1)) | b $(($1-1)) & }; sleep 50; }; b 12; sleep 50`

const (
	// eatTogether has six processes keep as many bytes each. The end of what they read is all they want.
	eatTogether = `for i in 1 2 3 4 5 6; do { head -c $0 /dev/zero; sleep 50; } | tail -c $0 & done; wait`
	// changeMode takes the time of those whom a sandbox asks about system calls.
	changeMode  = `$SIG{XCPU} = "IGNORE"; $end = time + 60; while (time < $end) { chmod 0600, "f" }`
	writeSparse = `truncate -s 10G sparse; dd if=/dev/zero of=sparse bs=1 count=1 seek=10G; exit 1`
)

// exceedLimits: what takes more than it may is ended, and the rest of the machine does not suffer.
func exceedLimits(t *testing.T, s *suite) {
	mb := int64(1 << 20)
	work := t.TempDir()
	for _, c := range []struct {
		name   string
		args   []string
		limits sandbox.Limits
		want   []sandbox.End
	}{
		{
			"time", []string{"sh", "-c", "trap '' TERM INT HUP; while :; do sleep 100; done"},
			sandbox.Limits{Wall: 300 * time.Millisecond}, []sandbox.End{sandbox.TimedOut},
		},
		{
			"CPU", []string{"sh", "-c", "while :; do :; done"},
			sandbox.Limits{CPU: time.Second}, []sandbox.End{sandbox.Exceeded},
		},
		{
			"CPU, ignored", []string{"sh", "-c", "trap '' XCPU; while :; do :; done"},
			sandbox.Limits{CPU: time.Second}, []sandbox.End{sandbox.Exceeded},
		},
		{
			"CPU, of requests",
			[]string{"sh", "-c", "touch f; for i in 1 2 3 4; do perl -e '" + changeMode + "' & done; wait; exit 1"},
			sandbox.Limits{CPU: time.Second, Wall: 3 * time.Second},
			[]sandbox.End{sandbox.TimedOut, sandbox.Exceeded, sandbox.Exited},
		},
		{
			"memory of one", []string{s.self, commandEat, strconv.Itoa(memoryFactor * 800_000_000)},
			sandbox.Limits{Memory: memoryFactor * 200 * mb}, []sandbox.End{sandbox.Exceeded, sandbox.Exited},
		},
		{
			"memory of many", []string{"sh", "-c", eatTogether, strconv.Itoa(memoryFactor * 100_000_000)},
			sandbox.Limits{Memory: memoryFactor * 300 * mb}, []sandbox.End{sandbox.Exceeded},
		},
		{
			"processes", []string{"sh", "-c", "i=0; while [ $i -lt 200 ]; do sleep 50 & i=$((i+1)); done; wait"},
			sandbox.Limits{Processes: 20}, []sandbox.End{sandbox.Exceeded, sandbox.Exited},
		},
		{
			"fork bomb", []string{"sh", "-c", bomb},
			sandbox.Limits{Processes: 50, Wall: 3 * time.Second},
			[]sandbox.End{sandbox.Exceeded, sandbox.TimedOut, sandbox.Exited}, // where it cannot fork it ends

		},
		{
			"fork bomb of sessions", []string{"sh", "-c", swarm},
			sandbox.Limits{Processes: 50, Wall: 3 * time.Second},
			[]sandbox.End{sandbox.Exceeded, sandbox.TimedOut},
		},
		{
			"file", []string{"sh", "-c", "head -c 10000000 /dev/zero >large; exit 1"},
			sandbox.Limits{FileSize: mb}, []sandbox.End{sandbox.Exited},
		},
		{
			"sparse file", []string{"sh", "-c", writeSparse},
			sandbox.Limits{FileSize: mb}, []sandbox.End{sandbox.Exited},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.skipExcepted(t)
			mark := newMark()
			begin := time.Now()
			spec := sandbox.Spec{Args: append([]string{"env", mark}, c.args...), Limits: c.limits, Dir: work}
			spec.Folders = []sandbox.Folder{
				{Path: s.self, Access: sandbox.ReadOnly}, {Path: work, Access: sandbox.ReadWrite},
			}
			r := s.run(t, spec)
			if r.err != nil || !slices.Contains(c.want, r.outcome.End) {
				t.Errorf("ended with %+v, %v: %.300s", r.outcome, r.err, r.stderr.String())
			}
			if r.outcome.End == sandbox.Exited && r.outcome.Exit == 0 {
				t.Error("nothing went wrong")
			}
			if took := time.Since(begin); took > 3*patience {
				t.Errorf("took %v", took)
			}
			checkGone(t, mark)
		})
	}
	for _, name := range []string{"large", "sparse"} {
		info, err := os.Stat(filepath.Join(work, name))
		if err == nil && info.Size() > mb {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
}
