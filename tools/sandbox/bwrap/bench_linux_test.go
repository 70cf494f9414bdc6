package bwrap_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
)

// BenchmarkTrue shows what a sandbox adds to a program that does nothing: without a network, and
// with the way to some hosts. The fastest of all runs says more than their mean on a busy machine.
func BenchmarkTrue(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	runner := bwrap.New(bwrap.Config{Relay: self})
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

// fastest returns how long run takes at least.
func fastest(b *testing.B, run func() error) time.Duration {
	b.Helper()
	least := time.Hour
	for b.Loop() {
		begin := time.Now()
		if err := run(); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(begin))
	}
	b.ReportMetric(float64(least)/float64(time.Millisecond), "least-ms")
	return least
}
