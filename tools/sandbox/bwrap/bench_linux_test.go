package bwrap_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
)

// BenchmarkTrue shows what a sandbox adds to a program that does nothing: without a network, and
// with the way to some hosts. The fastest of all runs says more than their mean on a busy machine.
// Each comes after a pause, as the commands of a conversation do: the kernel does some work that
// programs wait for less often when it has just done it.
func BenchmarkTrue(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	runner := bwrap.New(bwrap.Config{Folder: b.TempDir(), Relay: self})
	var bare time.Duration
	b.Run("bare", func(b *testing.B) {
		bare = fastest(b, func() error { return exec.CommandContext(b.Context(), "/usr/bin/true").Run() })
	})
	for name, network := range map[string]sandbox.Network{"offline": {}, "hosts": {Hosts: []string{"example.com"}}} {
		b.Run(name, func(b *testing.B) {
			took := fastest(b, func() error {
				_, err := runner.Run(b.Context(), sandbox.Spec{Args: []string{"/usr/bin/true"}, Network: network})
				return err
			})
			b.ReportMetric(float64(took-bare)/float64(time.Millisecond), "added-ms")
		})
	}
}

const pause = 30 * time.Millisecond

// fastest returns how long run takes at least.
func fastest(b *testing.B, run func() error) time.Duration {
	b.Helper()
	var all []time.Duration
	for b.Loop() {
		time.Sleep(pause)
		begin := time.Now()
		if err := run(); err != nil {
			b.Fatal(err)
		}
		all = append(all, time.Since(begin))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[0])/float64(time.Millisecond), "least-ms")
	b.ReportMetric(float64(all[len(all)/2])/float64(time.Millisecond), "median-ms")
	return all[0]
}
