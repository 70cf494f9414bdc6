package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/backup"
	"parley/channels/discord/discordtest"
	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
	"parley/requiretest"
	"parley/store/bolt"
	"parley/store/bolt/wal"
)

// A crowd is many people who talk to a program in a process of its own, and a
// clock for each answer: from the moment Telegram has the message to the moment
// it is given the answer, without the time that the model took. A chat has one
// message at a time that is not answered.
type crowd struct {
	*testGateway
	program string        // path; "" is the one that newCrowd built
	front   string        // the model's address, where its time is taken
	think   time.Duration // the model's, before it answers
	asked   atomic.Int64  // requests that the model answered
	deaf    func(chat int64) bool
	post    func(chat int64, text string) // has somebody write there

	mu   sync.Mutex
	open map[int64]*wait
}

// A wait is that for one answer.
type wait struct {
	chat  int64
	since time.Time
	model time.Duration // of it
	over  chan time.Duration
}

type began struct{} // key of the time when a request came to the model

// newCrowd builds the program named, Parley or the echo bot, as its users do.
func newCrowd(b testing.TB, program string) *crowd {
	c := &crowd{program: filepath.Join(b.TempDir(), "program"), open: map[int64]*wait{}, deaf: func(int64) bool { return false }}
	out, err := exec.CommandContext(b.Context(), "go", "build", "-o", c.program, program).CombinedOutput()
	if err != nil {
		b.Fatalf("build %s: %v\n%s", program, err, out)
	}
	c.testGateway = newTestGateway(b, c.answer)
	front := httptest.NewServer(http.HandlerFunc(c.serveModel))
	b.Cleanup(front.CloseClientConnections)
	c.front = front.URL + "/v1"
	c.more = map[string]any{
		"models": map[string]any{"main": map[string]any{
			"type": "openai", "baseUrl": c.front, "apiKey": "${TOWN_MODEL_KEY}", "model": "gpt-test", "contextWindow": 128000,
		}},
		"log": map[string]any{"level": "warn"},
	}
	c.post = func(chat int64, text string) { c.tg.Say(chat, text) }
	c.tg.Watch(func(e telegramtest.Event) {
		if e.Method == "sendMessage" && !e.Done {
			c.saw(e.Chat)
		}
	})
	return c
}

// strictly is of how many requests one is checked as strictly as those of tests. To check them all
// takes as much of the machine as half of Parley does, and the echo bot, whose requests are short,
// would have that to itself.
const strictly = 50

// serveModel answers a request to the model.
func (c *crowd) serveModel(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	ctx := context.WithValue(r.Context(), began{}, start)
	var body bytes.Buffer
	body.Grow(int(max(0, r.ContentLength)) + bytes.MinRead)
	if _, err := body.ReadFrom(r.Body); err != nil {
		return
	}
	chat, found := speaker(body.Bytes())
	if !found || c.asked.Add(1)%strictly == 1 {
		r = r.WithContext(ctx)
		r.Body = io.NopCloser(&body)
		c.llm.ServeHTTP(w, r)
		return
	}
	llmtest.Stream(ctx, w, c.answerTo(ctx, chat), bytes.Contains(body.Bytes(), []byte(`"include_usage":true`)))
}

// greeting is what everybody says, with the number of their chat at the end.
const greeting = "Good day from "

// speaker returns the chat that wrote the last message of a request.
func speaker(body []byte) (chat int64, found bool) {
	i := bytes.LastIndex(body, []byte(greeting))
	if i < 0 {
		return 0, false
	}
	said, _, _ := bytes.Cut(body[i:], []byte{'"'})
	return chatIn(string(said)), true
}

// chatIn returns the number at the end of said.
func chatIn(said string) int64 {
	chat, _ := strconv.ParseInt(said[strings.LastIndex(said, " ")+1:], 10, 64)
	return chat
}

// onDiscord has the crowd write there.
func (c *crowd) onDiscord() {
	dc, chats := c.discord(discordtest.Config{}), map[string]int64{}
	c.post = func(chat int64, text string) {
		who := strconv.FormatInt(chat, 10)
		dm := dc.DM(who)
		c.mu.Lock()
		chats[dm] = chat
		c.mu.Unlock()
		dc.Say(dm, who, "", text)
	}
	dc.Watch(func(e discordtest.Event) {
		if e.Route == "POST /channels/{id}/messages" && !e.Done {
			c.mu.Lock()
			chat := chats[e.Channel]
			c.mu.Unlock()
			c.saw(chat)
		}
	})
}

const (
	parley  = "."
	echobot = "./testdata/echobot"
)

// answer is the model.
func (c *crowd) answer(ctx context.Context, r llmtest.Request) llmtest.Reply {
	return c.answerTo(ctx, chatIn(r.Last()))
}

func (c *crowd) answerTo(ctx context.Context, chat int64) llmtest.Reply {
	select {
	case <-time.After(c.think):
	case <-ctx.Done():
	}
	start := ctx.Value(began{}).(time.Time)
	return llmtest.Reply{
		Text: "Good day to you in chat " + strconv.FormatInt(chat, 10), Piece: 12, Hang: c.deaf(chat),
		After: func(int) { c.thought(chat, time.Since(start)) },
	}
}

func (c *crowd) thought(chat int64, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.open[chat]; w != nil {
		w.model = d
	}
}

// saw stops the clock when an answer has come to a chat.
func (c *crowd) saw(chat int64) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.open[chat]; w != nil {
		delete(c.open, chat)
		w.over <- now.Sub(w.since) - w.model
	}
}

// run starts the program and returns the time from there to its first poll.
func (c *crowd) run() time.Duration {
	c.t.Helper()
	c.config()
	polled := make(chan time.Time, 1)
	var once sync.Once
	c.tg.Watch(func(e telegramtest.Event) {
		if e.Method == "getUpdates" {
			once.Do(func() { polled <- time.Now() })
		}
	})
	cmd := c.command()
	cmd.Path = c.program
	cmd.Env = append(cmd.Env, "BOT_TOKEN="+c.tg.Token(), "BOT_URL="+c.tg.URL, "MODEL_KEY="+canaryKey)
	c.kill()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.proc = p
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // the benchmarks look at ProcessState
	}()
	select {
	case at := <-polled:
		return at.Sub(start)
	case <-c.proc.ended:
	case <-time.After(waitTime):
	}
	c.t.Fatal("the program does not poll:\n" + c.log.String())
	return 0
}

// say has somebody write in chat, and returns what it takes to be answered.
func (c *crowd) say(chat int64) *wait {
	w := &wait{chat: chat, over: make(chan time.Duration, 1)}
	c.mu.Lock()
	if c.open[chat] != nil {
		c.mu.Unlock()
		panic(fmt.Sprintf("chat %d still waits for an answer", chat))
	}
	w.since = time.Now()
	c.open[chat] = w
	c.mu.Unlock()
	c.post(chat, greeting+"chat "+strconv.FormatInt(chat, 10))
	return w
}

// hear waits for the answer.
func (c *crowd) hear(w *wait) time.Duration {
	select {
	case d := <-w.over:
		return d
	case <-time.After(time.Minute):
		panic(fmt.Sprintf("a message is not answered in a minute; chat %d shows %+v; the log:\n%s", w.chat, c.tg.Chat(w.chat), &c.log))
	}
}

// talk has n messages written, message i in the chat that pick says, by so many
// people that each write when they have been answered.
func (c *crowd) talk(people, n int, pick func(i int) int64) (waits []time.Duration) {
	var all sync.WaitGroup
	var next atomic.Int64
	waits = make([]time.Duration, n)
	for range people {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				waits[i] = c.hear(c.say(pick(int(i))))
			}
		})
	}
	all.Wait()
	return waits
}

// drip has n messages written, so many a second, whether they are answered or not.
func (c *crowd) drip(perSecond, n int, pick func(i int) int64) (waits []time.Duration) {
	var all sync.WaitGroup
	waits = make([]time.Duration, n)
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := range n {
		w := c.say(pick(i))
		all.Go(func() { waits[i] = c.hear(w) })
		<-tick.C
	}
	all.Wait()
	return waits
}

// among returns a pick that goes round n chats.
func among(n int) func(int) int64 { return func(i int) int64 { return int64(1 + i%n) } }

// report gives b the middle and the worst but for one in a hundred.
func report(b *testing.B, waits []time.Duration) {
	b.ReportMetric(ms(at(waits, 50)), "p50-ms")
	b.ReportMetric(ms(at(waits, 99)), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// at returns the wait that percent of waits do not exceed.
func at(waits []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(waits))
	return sorted[len(sorted)*percent/100-(percent/100)]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// memory returns what /proc says the program holds, in MB.
func (c *crowd) memory(what string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.proc.cmd.Process.Pid))
	if err != nil {
		requiretest.Missing(c.t, "memory is measured on Linux: ", err)
	}
	_, after, _ := strings.Cut(string(status), "\n"+what+":")
	var kB float64
	_, _ = fmt.Sscan(after, &kB)
	return kB / 1000
}

// cpu returns how long the program has worked.
func (c *crowd) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.proc.cmd.Process.Pid))
	if err != nil {
		requiretest.Missing(c.t, "work is measured on Linux: ", err)
	}
	const afterName, utime = 3, 14 // as proc_pid_stat(5) counts
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(f[utime-afterName])
	system, _ := strconv.Atoi(f[utime+1-afterName])
	return time.Duration(user+system) * 10 * time.Millisecond // a tick of USER_HZ
}

// work returns how long the threads that the program has now have worked: a program that has just started has
// all of its threads.
func (c *crowd) work() (sum time.Duration) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", c.proc.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		requiretest.Missing(c.t, "work is measured on Linux: ", err)
	}
	for _, file := range threads {
		text, _ := os.ReadFile(file) // it may have ended
		var ns int64
		_, _ = fmt.Sscan(string(text), &ns)
		sum += time.Duration(ns)
	}
	return sum
}

// goroutines ends the program and returns how many it had: those that serve
// connections, which are kept open for a while, and the others.
func (c *crowd) goroutines() (others, connections int) {
	if err := c.proc.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		c.t.Fatal(err)
	}
	<-c.proc.ended
	_, dump, _ := strings.Cut(c.log.String(), "SIGQUIT")
	for _, g := range strings.Split(dump, "\n\ngoroutine ")[1:] {
		if strings.Contains(g, "net/http.(*Transport).dialConn") {
			connections++
		} else {
			others++
		}
	}
	return others, connections
}

// commits returns the number of the last commit to the store in dir: that of the last
// record of its log, or what the mark says when there is none.
func commits(t testing.TB, dir string) uint64 {
	file := filepath.Join(dir, backup.StoreFile)
	text, err := os.ReadFile(file + ".mark")
	if err != nil {
		t.Fatal(err)
	}
	var mark struct{ Lineage, Seq uint64 }
	if err := json.Unmarshal(text, &mark); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(bolt.LogOf(file) + "/0*")
	if err != nil || len(segments) == 0 {
		return mark.Seq
	}
	first, err := strconv.ParseUint(filepath.Base(segments[0]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	l, err := wal.Open(bolt.LogOf(file), mark.Lineage, first-1, func(uint64, []byte) error { return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l.Last()
}

// commits counts those to the program's store, if it has one.
func (c *crowd) commits() uint64 {
	if _, err := os.Stat(filepath.Join(c.dir, "parley.db")); err != nil {
		return 0
	}
	return commits(c.t, c.dir)
}

// written returns the bytes that the program has written to disks, after the memory of
// the system: in whole pages.
func (c *crowd) written() (n int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", c.proc.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "\nwrite_bytes: ")
	_, _ = fmt.Sscan(after, &n)
	return n
}
