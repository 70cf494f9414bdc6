package main

import (
	"fmt"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
)

// The benchmarks run the real program, built as its users build it, in a
// process of its own, and the people, Telegram and the model in this one.
// docs/performance.md says how to run them and what came out.

// subjects are Parley and what it is held against: a bot that does as little
// as can be done, without and with a model.
var subjects = []struct {
	name, program string
	model         bool
}{
	{"parley", parley, true},
	{"echo+model", echobot, true},
	{"echo", echobot, false},
}

// each runs f with each subject.
func each(b *testing.B, f func(b *testing.B, c *crowd)) {
	for _, s := range subjects {
		b.Run(s.name, func(b *testing.B) {
			c := newCrowd(b, s.program)
			if s.model {
				b.Setenv("MODEL_URL", c.front)
			}
			f(b, c)
		})
	}
}

// What Parley adds to a message when so many people write at once, each as soon
// as they are answered: the machine is busy all the time.
func BenchmarkCrowd(b *testing.B) {
	each(b, func(b *testing.B, c *crowd) {
		for _, people := range []int{1, 64, 256, 1000} {
			b.Run(fmt.Sprint(people), func(b *testing.B) {
				if c.proc != nil {
					c.stop() // nothing is left over for the next
				}
				c.run()
				c.talk(people, 2*people, among(10*people)) // the connections are open
				commits, cpu := c.commits(), c.cpu()
				written := c.written()
				b.ResetTimer()
				waits := c.talk(people, b.N, among(10*people))
				b.ReportMetric(float64(c.written()-written)/1024/float64(b.N), "KiB-written/msg")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
				b.ReportMetric(float64(c.commits()-commits)/float64(b.N), "commits/msg")
				b.ReportMetric(ms(c.cpu()-cpu)/float64(b.N), "cpu-ms/msg")
				report(b, waits)
			})
		}
	})
}

// The same in 256 chats of Discord, which takes 50 messages a second of a bot:
// when 15 come in a second, and when all write at once.
func BenchmarkDiscordChats256(b *testing.B) {
	c := newCrowd(b, parley)
	c.onDiscord()
	c.run()
	c.online()
	c.talk(256, 256, among(256)) // the connections are open
	c.drip(15, 15, among(256))   // and Discord's limit is at rest
	b.Run("steady", func(b *testing.B) {
		var waits []time.Duration
		for b.Loop() {
			waits = append(waits, c.drip(15, 256, among(256))...)
		}
		report(b, waits)
	})
	b.Run("at once", func(b *testing.B) {
		var waits []time.Duration
		for b.Loop() {
			waits = append(waits, c.talk(256, 256, among(256))...)
		}
		b.ReportMetric(float64(len(waits))/b.Elapsed().Seconds(), "msgs/s")
		report(b, waits)
	})
}

// What Parley adds to a message when 15 come in a second.
func BenchmarkSteady(b *testing.B) {
	each(b, func(b *testing.B, c *crowd) {
		c.run()
		c.drip(15, 15, among(100))
		commits, written := c.commits(), c.written()
		var waits []time.Duration
		for b.Loop() {
			waits = append(waits, c.drip(15, 300, among(100))...)
		}
		b.ReportMetric(float64(c.commits()-commits)/float64(len(waits)), "commits/msg")
		b.ReportMetric(float64(c.written()-written)/1024/float64(len(waits)), "KiB-written/msg")
		report(b, waits)
	})
}

// A thousand chats that write at the same time, when the model thinks for half
// a second: the middle and the worst of what Parley adds to that, and the time
// until all are answered.
func BenchmarkSideBySide(b *testing.B) {
	each(b, func(b *testing.B, c *crowd) {
		c.think = 500 * time.Millisecond
		c.run()
		c.talk(1000, 1000, among(1000)) // the connections are open
		var waits []time.Duration
		start := time.Now()
		for range b.N {
			waits = append(waits, c.talk(1000, 1000, among(1000))...)
		}
		b.ReportMetric(ms(time.Since(start))/float64(b.N), "all-ms")
		report(b, waits)
	})
}

// What others feel of a hundred chats that hang: in half of them the model
// never answers, in half Telegram does not (P14).
func BenchmarkNeighbours(b *testing.B) {
	for _, hung := range []int{0, 100} {
		b.Run(fmt.Sprint(hung, " hung"), func(b *testing.B) {
			c := newCrowd(b, parley)
			c.deaf = func(chat int64) bool { return chat > 1_000_000 }
			c.run()
			for i := range int64(hung / 2) {
				c.tg.Fail("sendMessage", telegramtest.Fault{Chat: 100_000 + i, Hang: true, Times: -1})
				c.tg.Say(100_000+i, "Good day")
				c.tg.Say(2_000_000+i, fmt.Sprint("Good day from ", 2_000_000+i))
			}
			c.drip(15, 15, among(100))
			var waits []time.Duration
			for b.Loop() {
				waits = append(waits, c.drip(15, 300, among(100))...)
			}
			report(b, waits)
		})
	}
}

// The 500th message of a chat beside its first ones: what Parley adds, in the
// middle of twenty.
func BenchmarkLongChat(b *testing.B) {
	c := newCrowd(b, parley)
	c.run()
	c.talk(1, 100, among(100))
	for b.Loop() {
		b.ReportMetric(ms(at(c.talk(1, 20, func(i int) int64 { return int64(10_000 + i) }), 50)), "turn1-ms")
		c.talk(1, 480, among(1))
		b.ReportMetric(ms(at(c.talk(1, 20, among(1)), 50)), "turn500-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// What the process holds when nobody has spoken yet, and when ten thousand
// chats have had one answer each (P15); and the time from the start to the
// first poll, in a new folder, after a good end, and after a kill.
func BenchmarkTenThousand(b *testing.B) {
	const sessions = 10_000
	for _, s := range subjects[:2] {
		b.Run(s.name, func(b *testing.B) {
			c := newCrowd(b, s.program)
			b.Setenv("MODEL_URL", c.front)
			starts(b, "start new", c, func() {
				c.kill()
				c.dir = b.TempDir()
			})
			before := census(b, "idle", c)
			c.run()
			c.talk(64, sessions, among(sessions))
			after := census(b, "10000 sessions", c)
			b.Run("goroutines more than idle", func(b *testing.B) {
				b.ReportMetric(float64(after-before), "goroutines")
				b.ReportMetric(0, "ns/op")
			})
			c.run()
			starts(b, "start", c, func() { c.stop() })
			starts(b, "start killed", c, c.kill)
		})
	}
}

// starts takes the time of starts, each after end, and the work of the processors until then, which depends less on
// what else the machine does.
func starts(b *testing.B, name string, c *crowd, end func()) {
	b.Run(name, func(b *testing.B) {
		var took, work []time.Duration
		for range b.N {
			end()
			took = append(took, c.run())
			work = append(work, c.work())
		}
		b.ReportMetric(ms(at(work, 10)), "cpu-p10-ms")
		b.ReportMetric(ms(at(work, 50)), "cpu-p50-ms")
		report(b, took)
	})
}

// census gives b what the program holds, and ends it. It returns how many
// goroutines it had, but for those of connections that are kept for a while.
func census(b *testing.B, name string, c *crowd) (goroutines int) {
	time.Sleep(5 * time.Second) // what was needed for a moment is given back
	m := map[string]float64{}
	for _, what := range []string{"VmRSS", "RssAnon", "RssFile", "VmHWM"} {
		m[what+"-MB"] = c.memory(what)
	}
	others, connections := c.goroutines()
	m["goroutines"], m["connection-goroutines"] = float64(others), float64(connections)
	b.Run(name, func(b *testing.B) {
		for unit, n := range m {
			b.ReportMetric(n, unit)
		}
		b.ReportMetric(0, "ns/op")
	})
	return others
}
