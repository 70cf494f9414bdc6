package landlock_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"parley/tools/sandbox"
	"parley/tools/sandbox/landlock"
	"parley/tools/sandbox/none"
)

// BenchmarkTrue is what a sandbox adds to the time of the shortest program. The median is what
// counts: others use the machine, too.
func BenchmarkTrue(b *testing.B) {
	run := func(r sandbox.Runner) func() error {
		return func() error {
			_, err := r.Run(b.Context(), sandbox.Spec{Args: []string{"/bin/true"}})
			return err
		}
	}
	for _, c := range []struct {
		name string
		once func() error
	}{
		{"bare", func() error { return exec.CommandContext(b.Context(), "/bin/true").Run() }},
		{"none", run(none.Runner{})},
		{"landlock", run(landlock.New())},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				begin := time.Now()
				if err := c.once(); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(begin))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs/median")
			b.ReportMetric(float64(times[0].Microseconds()), "µs/min")
		})
	}
}
