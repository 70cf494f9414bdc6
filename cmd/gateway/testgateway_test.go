package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
)

// A testGateway is the program in a process of its own, and the world around it: a
// Telegram and a model provider on loopback, as strict as the real ones.
type testGateway struct {
	t   testing.TB
	dir string
	tg  *telegramtest.Server
	dc  *discordtest.Server // nil: there is none
	llm *llmtest.Server

	owners   []string
	channels map[string]any // of config.json
	model    map[string]any // the main one, of config.json
	more     map[string]any // further keys of config.json
	dreams   string         // when they are due, as cron has it: not while a test runs; "": never
	args     []string       // of the gateway's command line
	program  string         // that is run; "": parley
	uid      int            // of the user who runs it, if it is not this one
	clock    *wallClock     // that the gateway sees; nil: that of the machine

	log    lockedBuffer
	proc   *process
	starts int
}

// A process is one run of the program.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// A lockedBuffer keeps what is written and tells who waits for more.
type lockedBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{} // closed at the next write; nil if nobody waits
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return l.b.Write(p)
}

// next returns what was written so far, and what is closed when there is more.
func (l *lockedBuffer) next() (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return l.b.String(), l.more
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const (
	canaryKey = "sk-canary-1234567890" // of the model
	person    = 7001                   // may talk

	waitTime = 90 * time.Second // with what must come, also on a machine that is busy
)

// newTestGateway founds a testGateway whose model answers with h.
func newTestGateway(t testing.TB, h llmtest.Handler) *testGateway {
	return newTestGatewayAt(t, telegramtest.Config{}, h)
}

// newTestGatewayAt founds one with a Telegram of its own kind.
func newTestGatewayAt(t testing.TB, tg telegramtest.Config, h llmtest.Handler) *testGateway {
	w := &testGateway{t: t, dir: tempDir(t), tg: telegramtest.NewServer(tg), llm: llmtest.NewServer(h)}
	w.llm.Key = canaryKey
	w.owners = []string{"console", fmt.Sprintf("telegram:%d", person)}
	w.model = map[string]any{
		"type": "openai", "baseUrl": w.llm.URL(), "apiKey": "${TOWN_MODEL_KEY}", "model": "gpt-test", "contextWindow": 32000,
	}
	w.channels = map[string]any{
		"console": map[string]any{}, "web": map[string]any{},
		"telegram": map[string]any{
			"token": "${TOWN_BOT_TOKEN}", "apiUrl": w.tg.URL, "allow": []string{"*"}, "rate": -1,
		},
	}
	w.more = map[string]any{}
	w.dreams = time.Now().UTC().Add(12 * time.Hour).Format("4 15 * * *")
	t.Cleanup(func() {
		w.kill()
		w.tg.Close()
		w.llm.Close()
		if t.Failed() {
			t.Logf("the log:\n%s", w.log.String())
		}
	})
	return w
}

// beside returns another gateway in the same world, with the same config and data of its own.
func (w *testGateway) beside() *testGateway {
	return &testGateway{
		t: w.t, dir: tempDir(w.t), tg: w.tg, llm: w.llm, dreams: w.dreams,
		owners: w.owners, channels: w.channels, model: w.model, more: w.more,
	}
}

// tempDir returns a folder of the test, which is removed at its end. Programs that a gateway ran which was killed may go
// on in it for a moment.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", strings.ReplaceAll(t.Name(), "/", "-"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := os.RemoveAll(dir)
		for late := time.Now().Add(waitTime); err != nil && time.Now().Before(late); err = os.RemoveAll(dir) {
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return dir
}

// config writes config.json.
func (w *testGateway) config() {
	w.t.Helper()
	c := map[string]any{
		"owners":   w.owners,
		"timezone": "UTC",
		"http":     map[string]any{"listen": "127.0.0.1:0"},
		"dream":    map[string]any{"cron": w.dreams},
		"models":   map[string]any{"main": w.model},
		"channels": w.channels,
	}
	for k, v := range w.more {
		c[k] = v
	}
	if agent, _ := c["agent"].(map[string]any); agent["titles"] == nil { // models of tests answer what a test says
		agent = maps.Clone(agent)
		if agent == nil {
			agent = map[string]any{}
		}
		agent["titles"] = false
		c["agent"] = agent
	}
	b, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, "config.json"), b, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// command prepares a run of the program with args.
func (w *testGateway) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), cmp.Or(w.program, "parley"), append([]string{"--data", w.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "HOME="+w.dir, "TOWN_MODEL_KEY="+canaryKey, "TOWN_BOT_TOKEN="+w.tg.Token())
	cmd.Stderr = &w.log
	if w.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.uid)}}
	}
	return cmd
}

// start runs the gateway.
func (w *testGateway) start() {
	w.t.Helper()
	if w.proc == nil && w.uid == 0 {
		w.config()
	}
	w.kill()
	w.offline()
	p := &process{cmd: w.command(w.args...), ended: make(chan struct{})}
	begin := p.cmd.Start
	if w.clock != nil {
		begin = func() error { return w.clock.start(p.cmd) }
	}
	if err := begin(); err != nil {
		w.t.Fatal(err)
	}
	w.proc = p
	w.starts++
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the tests look at ProcessState
	}()
}

// kill ends the gateway without a warning.
func (w *testGateway) kill() {
	if p := w.proc; p != nil {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	}
}

// stop ends the gateway as a service manager does, and returns its exit code.
func (w *testGateway) stop() int {
	w.t.Helper()
	if err := w.proc.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		w.t.Fatal(err)
	}
	<-w.proc.ended
	return w.proc.cmd.ProcessState.ExitCode()
}

// logs waits until the log says text n times.
func (w *testGateway) logs(text string, n int) {
	w.t.Helper()
	for late := time.After(waitTime); ; {
		log, more := w.log.next()
		if strings.Count(log, text) >= n {
			return
		}
		select {
		case <-more:
		case <-w.proc.ended:
			w.t.Fatalf("the program ended, and its log does not say %q", text)
		case <-late:
			w.t.Fatalf("the log does not say %q", text)
		}
	}
}

// sees waits until Telegram is as ok says.
func (w *testGateway) sees(what string, ok func(telegramtest.View) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitTime)
	defer cancel()
	if err := w.tg.Wait(ctx, ok); err != nil {
		w.t.Fatalf("waiting for %s: %v", what, err)
	}
}

// told waits until the chat shows messages of the bot for which ok is true.
func (w *testGateway) told(chat int64, what string, ok func(texts []string) bool) []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitTime)
	defer cancel()
	var texts []string
	err := w.tg.WaitChat(ctx, chat, func(ms []telegramtest.Message) bool {
		texts = botTexts(ms)
		return ok(texts)
	})
	if err != nil {
		w.t.Fatalf("chat %d: waiting for %s: %v; the bot said %q", chat, what, err, texts)
	}
	return texts
}

// says waits until the last message of the bot is text.
func (w *testGateway) says(chat int64, text string) {
	w.t.Helper()
	w.told(chat, fmt.Sprintf("%q", text), func(texts []string) bool {
		return len(texts) > 0 && texts[len(texts)-1] == text
	})
}

// answers waits until the last thing that the bot says below a message of the chat ends with end, and returns that.
// What it says above may be taken back meanwhile.
func (w *testGateway) answers(chat int64, message int, end string) (text string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitTime)
	defer cancel()
	err := w.tg.WaitChat(ctx, chat, func(ms []telegramtest.Message) bool {
		ms = slices.DeleteFunc(slices.Clone(ms), func(m telegramtest.Message) bool { return m.ID <= message })
		texts := botTexts(ms)
		if len(texts) == 0 {
			return false
		}
		text = texts[len(texts)-1]
		return strings.HasSuffix(text, end)
	})
	if err != nil {
		w.t.Fatalf("chat %d: waiting for an answer to message %d: %v; the bot said %q", chat, message, err, botTexts(w.tg.Chat(chat)))
	}
	return text
}

func botTexts(ms []telegramtest.Message) (texts []string) {
	for _, m := range ms {
		if m.FromBot() {
			texts = append(texts, words(m.Text))
		}
	}
	return texts
}

var stepLines = regexp.MustCompile(`^((> )?(⏳|🔧|✅|❌|↩)[^\n]*\n+)+`)

// words returns what a message says besides the steps on the way to it.
func words(text string) string { return stepLines.ReplaceAllString(text, "") }

// spoken returns what people said in r since the last answer in words: the
// texts without the gateway's first line.
func spoken(r llmtest.Request) (said []string) {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "assistant" && len(m.ToolCalls) == 0 {
			break
		}
		if m.Role == "user" {
			_, text, _ := strings.Cut(m.Content, "\n")
			said = append(said, text)
		}
	}
	slices.Reverse(said)
	return said
}

// results returns the results of tools in r since the last thing a person said.
func results(r llmtest.Request) (texts []string) {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" {
			break
		}
		if m.Role == "tool" {
			texts = append(texts, m.Content)
		}
	}
	slices.Reverse(texts)
	return texts
}

// run runs a command line of the program to its end, with in as its input.
func (w *testGateway) run(in string, args ...string) (out string, code int) {
	w.t.Helper()
	cmd := w.command(args...)
	cmd.Stdin = strings.NewReader(in)
	b, err := cmd.Output()
	if cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}
