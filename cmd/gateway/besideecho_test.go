package main

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/store/bolt/wal"
)

// A load is what a program was measured to take and to do in BenchmarkBesideEchoBot.
type load struct {
	start    time.Duration   // to the first poll, in a new folder
	idle     float64         // MB
	syncs    []time.Duration // what commits to a log of its own took meanwhile; nil if the program has one itself
	steady   effort          // 15 messages a second in 64 chats
	crowd    effort          // 256 people who write again as soon as they are answered
	together effort          // 1,000 chats at the same instant, when the model thinks for half a second
	peak     float64         // MB, of the latter
	after    float64         // MB, half a minute later
}

// An effort is what messages took.
type effort struct {
	p50, p99   time.Duration // less the model's time
	perSecond  float64       // answers
	cpu        time.Duration // for each message, as are those below
	kibWritten float64
	commits    float64
}

// BenchmarkBesideEchoBot measures Parley and the echo bot with a model in one run, and prints a table of both.
// Ratios hold on any machine.
func BenchmarkBesideEchoBot(b *testing.B) {
	loads := map[string]load{}
	for _, s := range subjects[:2] {
		b.Run(s.name, func(b *testing.B) {
			c := newCrowd(b, s.program)
			b.Setenv("MODEL_URL", c.front)
			loads[s.name] = measureLoad(c)
			b.ReportMetric(0, "ns/op")
		})
	}
	fmt.Print(besideTable(loads["echo+model"], loads["parley"]))
}

func measureLoad(c *crowd) (l load) {
	var starts []time.Duration
	for range 10 {
		c.kill()
		c.dir = c.t.TempDir()
		starts = append(starts, c.run())
	}
	l.start = at(starts, 50)
	time.Sleep(20 * time.Second) // what was needed for a moment is given back: after five quiet seconds
	l.idle = c.memory("VmRSS")
	c.talk(16, 64, among(64)) // the connections are open
	syscall.Sync()            // what the build and the starts wrote is not written meanwhile
	commits := c.commitBeside()
	l.steady = c.measure(func() []time.Duration { return c.drip(15, 225, among(64)) })
	l.syncs = commits()
	c.talkOn(256, 1)
	l.crowd = c.measure(func() []time.Duration { return c.talkOn(256, 12) })
	c.stop()
	c.run()
	c.think = 500 * time.Millisecond
	l.together = c.measure(func() []time.Duration { return c.talk(1000, 1000, among(1000)) })
	l.peak = c.memory("VmHWM")
	time.Sleep(30 * time.Second)
	l.after = c.memory("VmRSS")
	return l
}

// talkOn has so many people write n messages each, every one in a chat of their own and when the one before is
// answered.
func (c *crowd) talkOn(people, n int) []time.Duration {
	var all sync.WaitGroup
	waits := make([]time.Duration, people*n)
	for p := range people {
		all.Go(func() {
			for i := range n {
				waits[p*n+i] = c.hear(c.say(int64(1 + p)))
			}
		})
	}
	all.Wait()
	return waits
}

// commitBeside commits to a log as the store has one, 30 times a second, which is as often as Parley does for
// 15 messages, until the function that it returns is called. That returns what the commits took. It commits
// nothing beside a program that does: they would wait for one another.
func (c *crowd) commitBeside() (end func() []time.Duration) {
	if c.commits() > 0 {
		return func() []time.Duration { return nil }
	}
	l, err := wal.Open(c.t.TempDir(), 1, 0, func(uint64, []byte) error { return nil }, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	var took []time.Duration
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second / 30)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			began := time.Now()
			if err := l.Append(make([]byte, 1000)); err != nil {
				c.t.Error(err)
				return
			}
			took = append(took, time.Since(began))
		}
	}()
	return func() []time.Duration {
		close(ended)
		<-done
		return took
	}
}

// measure returns what the messages took that do has written and answered.
func (c *crowd) measure(do func() []time.Duration) effort {
	commits, written, cpu, begin := c.commits(), c.written(), c.cpu(), time.Now()
	waits := do()
	took, n := time.Since(begin), len(waits)
	return effort{
		p50:        at(waits, 50),
		p99:        at(waits, 99),
		perSecond:  float64(n) / took.Seconds(),
		cpu:        (c.cpu() - cpu) / time.Duration(n),
		kibWritten: float64(c.written()-written) / 1024 / float64(n),
		commits:    float64(c.commits()-commits) / float64(n),
	}
}

// besideTable returns a table in Markdown of what the echo bot and Parley took.
func besideTable(echo, parley load) string {
	var t strings.Builder
	t.WriteString("\n| | echo bot with a model | Parley | ratio | aim |\n| --- | --- | --- | --- | --- |\n")
	row := func(what, aim string, of func(load) float64) {
		ratio := "–"
		if of(echo) > 0 {
			ratio = fmt.Sprintf("%.2f", of(parley)/of(echo))
		}
		fmt.Fprintf(&t, "| %s | %.3g | %.3g | %s | %s |\n", what, of(echo), of(parley), ratio, aim)
	}
	row("15 messages a second in 64 chats: p50 added, ms", "≤ 2.5x", func(l load) float64 { return ms(l.steady.p50) })
	row("p99 added, ms", "≤ 3x", func(l load) float64 { return ms(l.steady.p99) })
	row("CPU a message, ms", "≤ 3x", func(l load) float64 { return ms(l.steady.cpu) })
	row("written a message, KiB", "≤ 24", func(l load) float64 { return l.steady.kibWritten })
	row("commits a message", "≤ 3", func(l load) float64 { return l.steady.commits })
	row("256 chats x 12, no pause: answers a second", "≥ 0.85x", func(l load) float64 { return l.crowd.perSecond })
	row("CPU a message, ms", "≤ 3x", func(l load) float64 { return ms(l.crowd.cpu) })
	row("written a message, KiB", "≤ 8", func(l load) float64 { return l.crowd.kibWritten })
	row("1,000 chats at once, model 500 ms: answers a second", "≥ 0.85x", func(l load) float64 { return l.together.perSecond })
	row("p50 added, ms", "", func(l load) float64 { return ms(l.together.p50) })
	row("peak RSS, MB", "≤ 105", func(l load) float64 { return l.peak })
	row("RSS half a minute later, MB", "", func(l load) float64 { return l.after })
	row("idle RSS, MB", "≤ 21", func(l load) float64 { return l.idle })
	row("start to first poll, ms", "≤ 2x", func(l load) float64 { return ms(l.start) })
	fmt.Fprintf(&t, "\nBeside the echo bot, a commit to a log of its own took %.3g ms, 1 %% of them %.3g ms and more.\n",
		ms(at(echo.syncs, 50)), ms(at(echo.syncs, 99)))
	return t.String()
}
