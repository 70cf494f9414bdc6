package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/config"
	"parley/llm"
	"parley/redact"
	"parley/store/storetest"
	"parley/timetest"
)

// A life is the gateway in a bubble of testing/synctest, in which days pass in moments: all
// of its parts, with its files on a real disk, but for what waits for the system. That is the
// terminal's socket, the trial of sandboxes, and the return of memory. The network and the
// model are in memory, and browsers reach the page by connections in memory.
//
// Files that are written get the time of the machine from the system, which the bubble does
// not know: stamp corrects that.
type life struct {
	*testing.T
	dir     string
	config  map[string]any
	net     *lifeNetwork
	gateway *gateway
	front   *timetest.Listener // of the page
	stop    func()
	opened  time.Duration // of processor time, that the last start took
	began   time.Time     // by the clock of the machine
	log     lockedBuffer  // warnings and errors
}

// inLife runs f with a life that begins in two days, so that no time of the bubble is one of the
// machine, at whatever hour that is. Its config has these keys besides.
func inLife(t *testing.T, more map[string]any, f func(*life)) {
	t.Helper()
	dir, began := storetest.TempDir(t), time.Now()
	timetest.TestWithOthers(t, func(t *testing.T) {
		timetest.Sleep(time.Until(began.Add(48 * time.Hour).Truncate(24 * time.Hour).Add(6 * time.Hour)))
		l := &life{T: t, dir: dir, began: began, net: &lifeNetwork{heard: make(chan chat.Message)}}
		l.config = map[string]any{
			"owners": []string{"net:0"}, "timezone": "UTC", "http": map[string]any{"listen": "127.0.0.1:0"},
			"models":   map[string]any{"main": map[string]any{"type": "script", "contextWindow": 8000}},
			"channels": map[string]any{"net": map[string]any{"allow": []string{"*"}}, "web": map[string]any{}},
			"agent":    map[string]any{"titles": false},
			"tools":    map[string]any{"rules": map[string]any{"exec": "off", "code": "off"}},
		}
		for key, value := range more {
			l.config[key] = value
		}
		l.start()
		defer func() { l.stop() }() // of the last start, also after a Fatal, whose reason a bubble that is blocked would hide
		f(l)
	})
}

// start runs the gateway.
func (l *life) start() {
	l.Helper()
	l.front = timetest.NewListener()
	g := &gateway{began: time.Now(), options: options{
		Config: l.parse(), Stderr: io.Discard, Log: slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Recent: &redact.Recent{}, Redact: &redact.Redactor{},
	}}
	l.gateway = g
	ctx, leave := context.WithCancelCause(context.Background())
	before := timetest.CPUTime(l)
	if err := g.build(ctx, leave); err != nil {
		l.Fatal(err)
	}
	l.opened = timetest.CPUTime(l) - before
	g.claimWorkspace()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run(ctx, leave)
	}()
	l.stop = func() {
		leave(nil)
		<-ended
	}
}

// parse reads the config.
func (l *life) parse() *config.Config {
	l.Helper()
	d := drivers()
	d.Channels = append(d.Channels, config.Driver{Name: "net", New: func() any { return &lifeConfig{network: l.net} }})
	d.Models = append(d.Models, config.DriverOf[lifeModel]("script"))
	text, err := json.Marshal(l.config)
	if err != nil {
		l.Fatal(err)
	}
	source := config.Source{File: filepath.Join(l.dir, "config.json"), Data: l.dir, Fixed: true, Environ: config.NewEnviron(nil), Drivers: d}
	c, err := config.Parse(source, text)
	if err != nil {
		l.Fatal(err)
	}
	return c
}

// run does what gateway.run does, as far as that can be done in a bubble.
func (l *life) run(ctx context.Context, leave context.CancelCauseFunc) {
	g := l.gateway
	work, rest := context.WithCancel(context.WithoutCancel(ctx))
	var outbox, intake sync.WaitGroup
	run := func(wg *sync.WaitGroup, part func() error) {
		wg.Go(func() {
			if err := part(); err != nil {
				leave(err)
			}
		})
	}
	g.mcp.SignIn.Start()
	run(&outbox, func() error { return g.hub.Work(work) })
	outbox.Go(func() { g.auditLog.Run(work) })
	outbox.Go(func() { g.cache.Run(work) })
	outbox.Go(func() { g.stats.Run(work) })
	outbox.Go(func() { g.mcp.Run(work) })
	run(&intake, func() error { return g.pool.Run(ctx) })
	run(&intake, func() error { return g.hub.Receive(ctx, g.observer.Deliver(g.pool.Deliver), "net", "web", "api") })
	run(&intake, func() error { return g.scheduler.Run(ctx) })
	intake.Go(func() { g.shell.Run(ctx) })
	intake.Go(func() { g.copies().Run(ctx) })
	intake.Go(func() { upkeepOf(g).Run(ctx) })
	intake.Go(func() { g.verifier.Run(ctx, g.tellDamage) })
	page := g.web.HTTP(g.web.Handler())
	intake.Go(func() { _ = page.Serve(l.front) })
	<-ctx.Done()
	_ = page.Close() // nobody waits for an answer
	intake.Wait()
	g.hub.Drain(work)
	rest()
	outbox.Wait()
	_ = g.mcpServer.Close() // as in gateway.run
	if err := errors.Join(why(ctx), g.close()); err != nil {
		l.Error(err)
	}
}

// pass lets time pass, in steps that are shorter than that of anything which looks at the
// times of copies.
func (l *life) pass(d time.Duration) {
	const step = 5 * time.Minute
	for ; d > 0; d -= step {
		timetest.Sleep(min(d, step))
		l.stamp(filepath.Join(l.dir, "backups"))
	}
}

// stamp gives what was written in a folder since it was stamped last the time of the bubble.
func (l *life) stamp(folder string) {
	now := time.Now()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode()&fs.ModeType&^fs.ModeDir != 0 {
			return err
		}
		if written := info.ModTime(); written.Before(l.began.Add(12 * time.Hour)) { // by the clock of the machine
			return os.Chtimes(path, now, now)
		}
		return nil
	})
	if err != nil {
		l.Error(err)
	}
}

// visit signs the owner in to the page.
func (l *life) visit() *visitor {
	l.Helper()
	link, err := l.gateway.web.Link(l.Context(), config.WebOwner)
	if err != nil {
		l.Fatal(err)
	}
	at := regexp.MustCompile(`(http://[^/]+)/signin#(\S+)`).FindStringSubmatch(link)
	jar, err := cookiejar.New(nil)
	if at == nil || err != nil {
		l.Fatal(link, err)
	}
	v := &visitor{t: l.T, base: at[1], Client: http.Client{Jar: jar, Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return l.front.Dial(ctx, "", "") },
		DisableKeepAlives: true,
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if status, body := v.do("POST", "/signin", map[string]string{"code": at[2]}); status >= 300 {
		l.Fatalf("sign in: %d %s", status, body)
	}
	return v
}

// A lifeNetwork is a chat network that takes every reply but those of "refused", and keeps none.
type lifeNetwork struct {
	heard chan chat.Message
	mu    sync.Mutex
	last  int
}

// A lifeConfig is its entry in config.json.
type lifeConfig struct{ network *lifeNetwork }

// CheckID implements [network.Driver].
func (*lifeConfig) CheckID(string) error { return nil }

// Build implements [network.Driver].
func (c *lifeConfig) Build(network.Host) (channels.Channel, error) { return c.network, nil }

// Run implements [channels.Channel].
func (n *lifeNetwork) Run(ctx context.Context, deliver chat.Deliver) error {
	for {
		select {
		case m := <-n.heard:
			if err := deliver(ctx, m); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// say has somebody write in a chat, and returns when the gateway has it.
func (n *lifeNetwork) say(id int, room, text string, files ...chat.File) {
	n.mu.Lock()
	n.last++
	number := n.last
	n.mu.Unlock()
	n.heard <- chat.Message{
		ID: fmt.Sprint("m", number), At: chat.Address{Channel: "net", Chat: room}, From: chat.Sender{ID: fmt.Sprint(id), Name: fmt.Sprint("Person ", id)},
		Text: text, Time: time.Now(), Files: files, Group: strings.HasPrefix(room, "group"),
	}
}

// Send implements [channels.Channel].
func (n *lifeNetwork) Send(_ context.Context, r chat.Reply) (channels.Receipt, error) {
	if r.To.Chat == "refused" {
		return "", channels.ForGood("blocked by %s", r.To.Chat)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return channels.Receipt(fmt.Sprint("m", n.last)), nil
}

// Fetch implements [channels.Fetcher]: the name of a file says how large it is.
func (n *lifeNetwork) Fetch(_ context.Context, m chat.Message, f chat.File) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(strings.Repeat(f.Ref+m.ID+"\n", 2000))), nil
}

// A lifeModel does what the last message of a person says, and is its own entry in config.json:
// each line "call NAME ARGS" is a call. Otherwise it answers a few sentences.
type lifeModel struct{}

// Build implements [llm.Driver].
func (*lifeModel) Build(name string) llm.Model {
	return llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		last := r.Messages[len(r.Messages)-1]
		m := llm.Message{Role: llm.Assistant, Model: name, Finish: llm.Stopped, Usage: llm.Usage{In: requestTokens(r), Out: 100}}
		if last.Role == llm.User {
			for line := range strings.Lines(last.Text) {
				if order, found := strings.CutPrefix(strings.TrimSpace(line), "call "); found {
					tool, args, _ := strings.Cut(order, " ")
					m.Calls = append(m.Calls, llm.ToolCall{ID: fmt.Sprint("c", len(r.Messages), "_", len(m.Calls)), Name: tool, Args: args})
					m.Finish = llm.CallsTools
				}
			}
		}
		if len(m.Calls) == 0 {
			m.Text = "answer " + strings.Repeat("that is one sentence of many. ", 12)
		}
		return m, nil
	})
}

// requestTokens is about what a request takes.
func requestTokens(r llm.Request) int {
	bytes := len(r.System)
	for _, m := range r.Messages {
		bytes += len(m.Text)
		for _, c := range m.Calls {
			bytes += len(c.Args)
		}
	}
	for _, t := range r.Tools {
		bytes += len(t.Description) + len(t.Schema)
	}
	return bytes / 4
}

// Sees implements [llm.Driver].
func (*lifeModel) Sees() bool { return false }

// Host implements [llm.Driver].
func (*lifeModel) Host() string { return "" }
