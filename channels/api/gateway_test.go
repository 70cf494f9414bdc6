package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"
	"go.uber.org/goleak"

	"parley/channels"
	"parley/channels/admission"
	"parley/channels/api"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// A testGateway is a Hub with the channel, behind a server that knows two keys, and
// something that answers.
type testGateway struct {
	t      *testing.T
	store  store.Store
	hub    *channels.Hub
	api    *api.Channel
	server *httptest.Server
	answer func(h *testGateway, m chat.Message) // of its own goroutine
	down   func()                               // shuts down, in the order of the gateway
	work   sync.WaitGroup

	mu    sync.Mutex
	full  error // of deliver
	heard []chat.Message
	saved map[string]string
}

// keys are who may ask, and the prefix of their sessions.
var keys = map[string][2]string{"Bearer k-ann": {"ann", "phone"}, "Bearer k-bob": {"bob", ""}, "Bearer k-ann2": {"ann", "phone-my"}, "Bearer k-eve": {"eve", ""}}

// bare is a testGateway whose channel nobody runs.
func bare(t *testing.T) *testGateway {
	h := &testGateway{t: t, store: mem.New(), saved: map[string]string{}}
	h.open()
	return h
}

// open makes the channel and its server.
func (h *testGateway) open() {
	h.api = api.New(api.Config{Name: "api", Store: h.store, Save: h.save, Models: models, Log: quiet})
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := keys[r.Header.Get("Authorization")]
		h.api.Serve(w, r, chat.Sender{ID: who[0], Name: who[0]}, who[1])
	}))
}

// models are those that everybody may name but eve.
func models(_ context.Context, _ chat.Address, who chat.Sender) ([]string, error) {
	if who.ID == "eve" {
		return nil, nil
	}
	return []string{"gpt"}, nil
}

func start(t *testing.T, s store.Store, answer func(*testGateway, chat.Message)) *testGateway {
	if answer == nil {
		answer = func(h *testGateway, m chat.Message) { h.reply(m, "You said: "+m.Text) }
	}
	h := &testGateway{t: t, store: s, answer: answer, saved: map[string]string{}}
	h.hub = channels.NewHub(channels.Config{Store: s, Log: quiet})
	access, err := admission.NewRules(nil, map[string][]string{"api": {"ann", "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	h.hub.Access().SetRules(access)
	h.open()
	h.hub.Add("api", h.api)
	intake, stop := context.WithCancel(context.Background())
	work, rest := context.WithCancel(context.Background())
	var in, out sync.WaitGroup
	in.Go(func() { _ = h.hub.Receive(intake, h.deliver) })
	out.Go(func() { _ = h.hub.Work(work) })
	h.down = sync.OnceFunc(func() {
		stop()
		in.Wait()
		h.work.Wait()
		drain, cancel := context.WithTimeout(work, 5*time.Second)
		h.hub.Drain(drain)
		cancel()
		rest()
		out.Wait()
		h.server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	t.Cleanup(h.down)
	h.until(func() bool { // it runs
		w := h.post("k-bob", `{"model":"parley","messages":[{"role":"user","content":"/ping"}]}`, nil)
		return w.StatusCode == 200
	})
	h.mu.Lock()
	h.heard = nil
	h.mu.Unlock()
	return h
}

func (h *testGateway) save(_ context.Context, _ chat.Address, _ chat.Sender, name string, r io.Reader) (chat.File, error) {
	data, err := io.ReadAll(r)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.saved[name] = string(data)
	return chat.File{Path: "inbox/" + name, Name: name}, err
}

// deliver is what the Pool does: an ID that is known is dropped (P2).
func (h *testGateway) deliver(_ context.Context, m chat.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full != nil {
		return h.full
	}
	if slices.ContainsFunc(h.heard, func(o chat.Message) bool { return o.Key() == m.Key() }) {
		return nil
	}
	h.heard = append(h.heard, m)
	answer := h.answer
	if m.Text == "/ping" {
		answer = func(h *testGateway, m chat.Message) { h.reply(m, "pong") }
	}
	h.work.Go(func() { answer(h, m) })
	return nil
}

func (h *testGateway) reply(m chat.Message, text string) {
	r := m.Reply()
	r.Text = text
	r.Tokens = &chat.Tokens{In: 120, Out: 7, Cached: 100}
	h.send(r)
}

func (h *testGateway) send(r chat.Reply) {
	if err := h.hub.Send(context.Background(), r); err != nil {
		h.t.Error(err)
	}
}

// said returns what was heard, a line each: session and text.
func (h *testGateway) said() (lines []string) {
	for _, m := range h.messages() {
		lines = append(lines, fmt.Sprint(m.At.Session(), " ", m.Text))
	}
	return lines
}

func (h *testGateway) messages() []chat.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard)
}

func (h *testGateway) until(ok func() bool) {
	h.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			h.t.Fatalf("it does not come; heard %q", h.said())
		}
	}
}

// client is go-openai's own.
func (h *testGateway) client(key string) *openai.Client {
	cfg := openai.DefaultConfig(key)
	cfg.BaseURL = h.server.URL + "/v1"
	return openai.NewClientWithConfig(cfg)
}

// A talk is a client's view of a conversation, all of which it sends each time.
type talk struct {
	h      *testGateway
	client *openai.Client
	said   []openai.ChatCompletionMessage
	user   string
}

func (h *testGateway) talk(key string) *talk { return &talk{h: h, client: h.client(key)} }

func (k *talk) request(text string) openai.ChatCompletionRequest {
	k.said = append(k.said, openai.ChatCompletionMessage{Role: "user", Content: text})
	return openai.ChatCompletionRequest{Model: "parley", Messages: k.said, User: k.user}
}

func (k *talk) say(text string) string {
	k.h.t.Helper()
	r, err := k.client.CreateChatCompletion(k.h.t.Context(), k.request(text))
	if err != nil {
		k.h.t.Fatal(err)
	}
	k.said = append(k.said, r.Choices[0].Message)
	return r.Choices[0].Message.Content
}

func (k *talk) stream(text string) (pieces []string, whole string) {
	k.h.t.Helper()
	s, err := k.client.CreateChatCompletionStream(k.h.t.Context(), k.request(text))
	if err != nil {
		k.h.t.Fatal(err)
	}
	defer s.Close()
	for {
		chunk, err := s.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			k.h.t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content != "" {
				pieces = append(pieces, c.Delta.Content)
			}
		}
	}
	whole = strings.Join(pieces, "")
	k.said = append(k.said, openai.ChatCompletionMessage{Role: "assistant", Content: whole})
	return pieces, whole
}

// A result is a response, read.
type result struct {
	*http.Response
	body string
}

// post asks without a client.
func (h *testGateway) post(key, body string, header map[string]string) result {
	h.t.Helper()
	r, err := h.do(context.Background(), key, body, header)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func (h *testGateway) do(ctx context.Context, key, body string, header map[string]string) (result, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", h.server.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return result{}, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return result{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return result{resp, string(b)}, err
}

func fresh() store.Store { return mem.New() }
