package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"parley/channels/api"
	"parley/channels/channeltest"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}

// An ordinary client, which sends all that was said each time, goes on with its conversation.
func TestTalk(t *testing.T) {
	h := start(t, fresh(), nil)
	k := h.talk("k-ann")
	same(t, "answer", k.say("hello"), "You said: hello")
	same(t, "answer", k.say("and then?"), "You said: and then?")
	pieces, _ := k.stream("the end")
	same(t, "stream", pieces, []string{"You said: the end"})
	ms := h.messages()
	for i, m := range ms {
		if m.At != ms[0].At || m.From.ID != "ann" || m.From.Role != chat.User || m.Quote != nil || m.Time.IsZero() {
			t.Errorf("message %d: %+v", i, m)
		}
	}
	if at := ms[0].At; at.Chat != "ann" || !strings.HasPrefix(at.Thread, "phone~") {
		t.Errorf("it is held at %+v", at)
	}
	same(t, "texts", []string{ms[0].Text, ms[1].Text, ms[2].Text}, []string{"hello", "and then?", "the end"})
}

// Two conversations that said the same so far are told apart when they go on,
// whoever goes on first; and one person's are not another's.
func TestTalksThatBeginTheSame(t *testing.T) {
	h := start(t, fresh(), nil)
	a, b, other := h.talk("k-ann"), h.talk("k-ann"), h.talk("k-bob")
	for _, k := range []*talk{a, b, other} {
		k.say("hello")
	}
	a.say("I am A")
	b.say("I am B")
	other.say("I am Bob")
	b.say("still B")
	a.say("still A")
	by := map[chat.Address][]string{}
	for _, m := range h.messages() {
		by[m.At] = append(by[m.At], m.Text)
		if m.Quote != nil {
			t.Errorf("%q brings along %q", m.Text, m.Quote.Text)
		}
	}
	if len(by) != 3 {
		t.Errorf("%d conversations, want 3: %q", len(by), h.said())
	}
	for at, texts := range by {
		switch fmt.Sprint(texts) {
		case "[hello I am A still A]", "[hello I am B still B]":
		case "[hello I am Bob]":
			if at.Chat != "bob" {
				t.Errorf("Bob speaks at %+v", at)
			}
		default:
			t.Errorf("%+v: %q", at, texts)
		}
	}
}

// P5: of many that go on from the same place at once, one does; the others
// begin anew, and none is lost or mixed up.
func TestTalksThatForkAtOnce(t *testing.T) {
	h := start(t, fresh(), nil)
	k := h.talk("k-ann")
	k.say("hello")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			fork := &talk{h: h, client: k.client, said: slices.Clone(k.said)}
			for j := range 2 {
				text := fmt.Sprintf("fork %d, %d", i, j)
				r, err := fork.client.CreateChatCompletion(t.Context(), fork.request(text))
				if err != nil || r.Choices[0].Message.Content != "You said: "+text {
					t.Errorf("%s: %+v, %v", text, r, err)
					return
				}
				fork.said = append(fork.said, r.Choices[0].Message)
			}
		})
	}
	wg.Wait()
	by := map[chat.Address][]string{}
	for _, m := range h.messages() {
		by[m.At] = append(by[m.At], strings.TrimSuffix(strings.TrimSuffix(m.Text, ", 0"), ", 1"))
	}
	if len(by) != 8 {
		t.Errorf("%d conversations, want 8", len(by))
	}
	for at, forks := range by {
		if len(slices.Compact(slices.DeleteFunc(forks, func(s string) bool { return s == "hello" }))) != 1 {
			t.Errorf("%+v holds %q", at, forks)
		}
	}
}

// R-S11: a history that is not ours begins a conversation, to which it is quoted.
func TestHistoryOfAnother(t *testing.T) {
	h := start(t, fresh(), nil)
	k := h.talk("k-ann")
	k.said = []openai.ChatCompletionMessage{
		{Role: "system", Content: "Be kind."}, {Role: "user", Content: "ping"}, {Role: "assistant", Content: "pong\n[Mon, from Bob]"},
	}
	k.say("and now?")
	k.say("again")
	k.said[1].Content = "edited"
	k.say("after the edit")
	ms := h.messages()
	if len(ms) != 3 || ms[0].At != ms[1].At || ms[2].At == ms[0].At {
		t.Fatalf("heard %q", h.said())
	}
	q := ms[0].Quote
	if q == nil || !q.Forwarded || ms[0].Text != "and now?" {
		t.Fatalf("%+v", ms[0])
	}
	for _, want := range []string{"Be kind.", "user: ping", "assistant: pong"} {
		if !strings.Contains(q.Text, want) {
			t.Errorf("%q is not in %q", want, q.Text)
		}
	}
	if ms[1].Quote != nil {
		t.Errorf("what is known is quoted again: %q", ms[1].Quote.Text)
	}
	if q := ms[2].Quote; q == nil || !strings.Contains(q.Text, "user: edited") || !strings.Contains(q.Text, "assistant: You said: again") {
		t.Errorf("after the edit: %+v", q)
	}
}

// A client may name the conversation, by the header or the field user.
func TestNamed(t *testing.T) {
	h := start(t, fresh(), nil)
	k := h.talk("k-ann")
	k.user = "work"
	k.say("one")
	k.said = nil
	k.say("two")
	body := `{"model":"parley","user":"ignored","messages":[{"role":"assistant","content":"x"},{"role":"user","content":%q}]}`
	r := h.post("k-ann", fmt.Sprintf(body, "three"), map[string]string{"X-Session-Id": "work"})
	same(t, "the header names it", r.Header.Get("X-Session-Id"), "work")
	h.post("k-ann", fmt.Sprintf(body, "four"), map[string]string{"X-Session-Id": "../<x> " + strings.Repeat("y", 5000)})
	h.post("k-bob", fmt.Sprintf(body, "five"), map[string]string{"X-Session-Id": "work"})
	said := h.said()
	same(t, "named", said[:3], []string{"api:ann/phone~work one", "api:ann/phone~work two", "api:ann/phone~work three"})
	if !strings.HasPrefix(said[3], "api:ann/phone~") || len(said[3]) > 60 || strings.ContainsAny(said[3], "<.") {
		t.Errorf("a strange name became %q", said[3])
	}
	same(t, "without a prefix", said[4], "api:bob/work five")
	// A response names its conversation, so that a client can go on with it by name.
	r = h.post("k-ann", `{"model":"parley","messages":[{"role":"user","content":"six"}]}`, nil)
	h.post("k-ann", fmt.Sprintf(body, "seven"), map[string]string{"X-Session-Id": r.Header.Get("X-Session-Id")})
	ms := h.messages()
	if ms[5].At != ms[6].At || ms[6].Quote != nil {
		t.Errorf("%q", h.said()[5:])
	}
}

// A key opens the sessions of its own prefix only, however they are named.
func TestPrefix(t *testing.T) {
	h := start(t, fresh(), nil)
	body := `{"model":"parley","user":%q,"messages":[{"role":"user","content":"hi"}]}`
	for _, c := range [][2]string{{"k-ann", "my-work"}, {"k-ann", "my~work"}, {"k-ann2", "work"}} {
		h.post(c[0], fmt.Sprintf(body, c[1]), nil)
	}
	if ms := h.messages(); ms[0].At == ms[2].At || ms[1].At == ms[2].At {
		t.Errorf("two keys, one session: %q", h.said())
	}
}

// P3: a request that comes again under its key is one turn, and gets the same answer.
func TestResend(t *testing.T) {
	for _, header := range []string{"Idempotency-Key", "X-Request-Id"} {
		t.Run(header, func(t *testing.T) {
			var turns atomic.Int64
			s := fresh()
			go1 := make(chan struct{})
			h := start(t, s, func(h *testGateway, m chat.Message) {
				n := turns.Add(1)
				<-go1
				h.reply(m, fmt.Sprint("answer ", n))
			})
			body := `{"model":"parley","messages":[{"role":"user","content":"hello"}]}`
			key := map[string]string{header: "abc"}
			ctx, cut := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() { _, err := h.do(ctx, "k-ann", body, key); first <- err }()
			h.until(func() bool { return len(h.messages()) == 1 })
			cut() // the connection, not the turn
			if err := <-first; err == nil {
				t.Error("a cut connection gives no error")
			}
			answers := make(chan string, 4)
			for range 4 {
				go func() { r, _ := h.do(t.Context(), "k-ann", body, key); answers <- r.body }()
			}
			close(go1)
			for range 4 {
				if b := <-answers; !strings.Contains(b, `"answer 1"`) {
					t.Errorf("got %s", b)
				}
			}
			h.down()
			again := start(t, s, func(h *testGateway, m chat.Message) { h.reply(m, "a second turn") })
			for _, b := range []string{body, strings.Replace(body, "{", `{"stream":true,`, 1)} {
				if r := again.post("k-ann", b, key); !strings.Contains(r.body, `"answer 1"`) {
					t.Errorf("after a restart: %s", r.body)
				}
			}
			if len(again.messages()) != 0 {
				t.Errorf("a second turn: %q", again.said())
			}
			if r := again.post("k-bob", body, key); !strings.Contains(r.body, "second turn") {
				t.Errorf("somebody else's key: %s", r.body)
			}
			if r := again.post("k-ann", strings.Replace(body, "hello", "bye", 1), key); !strings.Contains(r.body, "second turn") {
				t.Errorf("something else under the key: %s", r.body)
			}
		})
	}
}

// P19: what could not be taken can be sent again, and stays in its conversation.
func TestRefused(t *testing.T) {
	h := start(t, fresh(), nil)
	k := h.talk("k-ann")
	k.say("hello")
	for _, err := range []error{store.ErrFull, errors.New("secret")} {
		h.mu.Lock()
		h.full = err
		h.mu.Unlock()
		r, err := k.client.CreateChatCompletion(t.Context(), k.request("more"))
		e, ok := errors.AsType[*openai.APIError](err)
		if !ok || e.HTTPStatusCode != 503 || e.Type != "server_error" || strings.Contains(e.Message, "secret") {
			t.Errorf("got %+v, %v", r, err)
		}
		k.said = k.said[:2]
	}
	h.mu.Lock()
	h.full = nil
	h.mu.Unlock()
	k.say("more")
	if ms := h.messages(); len(ms) != 2 || ms[0].At != ms[1].At || ms[1].Quote != nil {
		t.Errorf("heard %q", h.said())
	}
}

// What the agent says is streamed as it comes, and what was streamed and the
// answer are the same for the next request.
func TestStream(t *testing.T) {
	next := make(chan string)
	h := start(t, fresh(), func(h *testGateway, m chat.Message) {
		live := h.hub.Live(context.Background(), m.Reply())
		last := ""
		for s := range next {
			if s == "end" {
				break
			}
			last = s
			live.Show(s)
		}
		live.Close()
		h.reply(m, last)
	})
	for _, c := range []struct {
		name  string
		shown []string
		whole string
	}{
		{"grows", []string{"Let me ", "Let me look.\n\n", "Let me look.\n\nIt is here. "}, "Let me look.\n\nIt is here."},
		{"blanks differ", []string{" One. ", "One.\n\n\nTwo."}, "One.\n\n\nTwo."},
		{"begins anew", []string{"Wrong", "Right and true"}, "Wrong\n\nRight and true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := h.talk("k-ann")
			k.user = ""
			k.said = append(k.said, openai.ChatCompletionMessage{Role: "system", Content: c.name})
			s, err := k.client.CreateChatCompletionStream(t.Context(), k.request("go"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			got := ""
			recv := func() bool {
				chunk, err := s.Recv()
				if err != nil {
					return false
				}
				got += chunk.Choices[0].Delta.Content
				return true
			}
			for i, shown := range c.shown {
				next <- shown
				for want := strings.TrimSpace(shown); i == 0 && got != want; { // it comes before the end does
					if !recv() {
						t.Fatalf("got %q, want %q", got, want)
					}
				}
			}
			next <- "end"
			for recv() {
			}
			same(t, "whole", got, c.whole)
			k.said = append(k.said, openai.ChatCompletionMessage{Role: "assistant", Content: got})
			done := make(chan struct{})
			go func() { next <- "more"; next <- "end"; close(done) }()
			k.say("go on")
			<-done
			if ms := h.messages(); ms[len(ms)-1].At != ms[len(ms)-2].At {
				t.Errorf("it is not known again: %q", h.said())
			}
		})
	}
}

// The shape of a stream, down to the byte, and of an answer.
func TestShape(t *testing.T) {
	h := start(t, fresh(), nil)
	r := h.post("k-ann", `{"model":"gpt","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`, nil)
	same(t, "type", r.Header.Get("Content-Type"), "text/event-stream")
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(r.body), "\n\n") {
		var c struct {
			Object, Model, ID string
			Created           int64
			Choices, Usage    json.RawMessage
		}
		if data := strings.TrimPrefix(line, "data: "); data == "[DONE]" {
			got = append(got, data)
		} else if err := json.Unmarshal([]byte(data), &c); err != nil || c.Object != "chat.completion.chunk" || c.Model != "gpt" || c.ID == "" || c.Created == 0 {
			t.Errorf("%s: %v", line, err)
		} else {
			got = append(got, string(c.Choices)+string(c.Usage))
		}
	}
	same(t, "events", got, []string{
		`[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}]`,
		`[{"delta":{"content":"You said: hi"},"finish_reason":null,"index":0}]`,
		`[{"delta":{},"finish_reason":"stop","index":0}]`,
		`[]{"completion_tokens":7,"prompt_tokens":120,"prompt_tokens_details":{"cached_tokens":100},"total_tokens":127}`,
		"[DONE]",
	})
	r = h.post("k-ann", `{"model":"parley","messages":[{"role":"user","content":"hi"}]}`, nil)
	var c openai.ChatCompletionResponse
	if err := json.Unmarshal([]byte(r.body), &c); err != nil || c.Object != "chat.completion" || c.Choices[0].FinishReason != "stop" || c.Choices[0].Message.Role != "assistant" {
		t.Errorf("%s: %v", r.body, err)
	}
	models, err := h.client("k-ann").ListModels(t.Context())
	if err != nil || len(models.Models) != 2 || models.Models[0].ID != "parley" || models.Models[1].ID != "gpt" {
		t.Errorf("models: %+v, %v", models, err)
	}
}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func picture(url string) openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: "user", MultiContent: []openai.ChatMessagePart{
		{Type: "text", Text: "what is this?"}, {Type: "image_url", ImageURL: &openai.ChatMessageImageURL{URL: url}},
	}}
}

func TestImage(t *testing.T) {
	h := start(t, fresh(), nil)
	k := h.talk("k-ann")
	k.said = append(k.said, picture("data:image/png;base64,"+pixel))
	k.say("please")
	k.say("and?") // the image comes again with the history, and is not saved again
	m := h.messages()[0]
	if len(m.Files) != 1 || m.Files[0].Path != "inbox/image-1.png" || m.Files[0].Type != "image/png" || m.Files[0].Size == 0 || m.Text != "what is this?\n\nplease" {
		t.Fatalf("%+v", m)
	}
	if data, _ := base64.StdEncoding.DecodeString(pixel); h.saved["image-1.png"] != string(data) {
		t.Error("another image was saved")
	}
	if m := h.messages()[1]; len(m.Files) != 0 || m.At != h.messages()[0].At {
		t.Errorf("%+v", m)
	}
}

// R-S19: no address is fetched; a zip is no image, whatever it is called.
func TestImageRefused(t *testing.T) {
	h := start(t, fresh(), nil)
	for _, url := range []string{
		h.server.URL + "/x.png", "http://169.254.169.254/", "file:///etc/passwd", "", "data:,x", "data:image/png;base64,!",
		"data:image/png;base64,UEsDBBQAAAAIAA==", "data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=",
	} {
		_, err := h.client("k-ann").CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Model: "parley", Messages: []openai.ChatCompletionMessage{picture(url)}})
		if e, ok := errors.AsType[*openai.APIError](err); !ok || e.HTTPStatusCode != 400 || *e.Param != "messages[0]" {
			t.Errorf("%s: %v", url, err)
		}
	}
	if len(h.saved) != 0 || len(h.messages()) != 0 {
		t.Errorf("saved %v, heard %q", h.saved, h.said())
	}
}

func TestBadInput(t *testing.T) {
	h := start(t, fresh(), nil)
	user := `{"role":"user","content":"hi"}`
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"nothing":           {``, 400, "invalid_value"},
		"not JSON":          {`{"model`, 400, "invalid_value"},
		"a list":            {`[]`, 400, "invalid_value"},
		"no messages":       {`{"model":"parley"}`, 400, "invalid_value"},
		"empty messages":    {`{"model":"parley","messages":[]}`, 400, "invalid_value"},
		"two answers":       {`{"model":"parley","n":2,"messages":[` + user + `]}`, 400, "invalid_value"},
		"no user":           {`{"model":"parley","messages":[{"role":"system","content":"x"}]}`, 400, "invalid_value"},
		"answer at the end": {`{"model":"parley","messages":[` + user + `,{"role":"assistant","content":"x"}]}`, 400, "invalid_value"},
		"says nothing":      {`{"model":"parley","messages":[{"role":"user","content":" "}]}`, 400, "invalid_value"},
		"null":              {`{"model":"parley","messages":[{"role":"user","content":null}]}`, 400, "invalid_value"},
		"no content":        {`{"model":"parley","messages":[{"role":"user"}]}`, 400, "invalid_value"},
		"a number":          {`{"model":"parley","messages":[{"role":"user","content":7}]}`, 400, "invalid_value"},
		"unknown role":      {`{"model":"parley","messages":[{"role":"root","content":"x"}]}`, 400, "invalid_value"},
		"unknown part":      {`{"model":"parley","messages":[{"role":"user","content":[{"type":"video","text":"x"}]}]}`, 400, "invalid_value"},
		"unknown model":     {`{"model":"gpt-9<b>","messages":[` + user + `]}`, 404, "model_not_found"},
		"no model":          {`{"messages":[` + user + `]}`, 404, "model_not_found"},
	} {
		r := h.post("k-ann", c.body, nil)
		var e struct {
			Error struct {
				Message, Type string
				Code          *string
			}
		}
		if err := json.Unmarshal([]byte(r.body), &e); err != nil || r.StatusCode != c.status || e.Error.Message == "" || e.Error.Type != "invalid_request_error" || *e.Error.Code != c.code {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	r := h.post("k-ann", `{}`, map[string]string{"Content-Type": "text/plain"})
	same(t, "content type", r.StatusCode, 415)
	for url, status := range map[string]int{"/v1/chat/completions": 405, "/v1/files": 404, "/v1/models": 200} {
		resp, err := http.Get(h.server.URL + url) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		same(t, url, resp.StatusCode, status)
	}
	if len(h.messages()) != 0 {
		t.Errorf("heard %q", h.said())
	}
}

// The tokens that an answer took are told, streamed or not, and again to whoever
// asks again; a model can be looked up by its name.
func TestUsage(t *testing.T) {
	h := start(t, fresh(), nil)
	req := openai.ChatCompletionRequest{Model: "parley", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hi"}}}
	whole, err := h.client("k-ann").CreateChatCompletion(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, u openai.Usage) {
		t.Helper()
		if u.PromptTokens != 120 || u.CompletionTokens != 7 || u.TotalTokens != 127 || u.PromptTokensDetails == nil || u.PromptTokensDetails.CachedTokens != 100 {
			t.Errorf("%s: %+v", what, u)
		}
	}
	check("whole", whole.Usage)
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	s, err := h.client("k-ann").CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var last openai.ChatCompletionStreamResponse
	for {
		chunk, err := s.Recv()
		if err != nil {
			break
		}
		last = chunk
	}
	if last.Usage == nil {
		t.Fatal("a stream tells no usage")
	}
	check("stream", *last.Usage)
	for range 2 {
		r := h.post("k-ann", `{"model":"parley","messages":[{"role":"user","content":"once"}]}`, map[string]string{"Idempotency-Key": "k"})
		if !strings.Contains(r.body, `"total_tokens":127`) {
			t.Errorf("asked again: %s", r.body)
		}
	}
	for name, status := range map[string]int{"parley": 200, "gpt": 200, "gpt-9": 404} {
		m, err := h.client("k-ann").GetModel(t.Context(), name)
		if status == 200 && (err != nil || m.ID != name) {
			t.Errorf("%s: %+v %v", name, m, err)
		}
		if e, ok := errors.AsType[*openai.APIError](err); status != 200 && (!ok || e.HTTPStatusCode != status) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A question is the answer; the next message answers it, and gets what comes of it.
func TestQuestion(t *testing.T) {
	h := start(t, fresh(), func(h *testGateway, m chat.Message) {
		live := h.hub.Live(context.Background(), m.Reply())
		live.Show("Let me see.")
		live.Close()
		c, err := h.hub.Questions().Ask(context.Background(), chat.Reply{ID: "ask:" + m.Key(), To: m.At, Text: "Really?",
			Ask: &chat.Question{ID: m.ID, Choices: []string{"Yes", "No"}, Whom: "ann"}})
		if err != nil {
			t.Error(err)
		}
		h.reply(m, "Let me see.\n\nYou chose "+c.Text)
	})
	k := h.talk("k-ann")
	for i, say := range []func(string) string{k.say, func(text string) string { _, whole := k.stream(text); return whole }} {
		if got := say("delete it"); !strings.Contains(got, "Really?\n\n1. Yes\n2. No") {
			t.Errorf("got %q", got)
		}
		same(t, "what came of it", say("2."), "Let me see.\n\nYou chose No")
		if ms := h.messages(); len(ms) != i+1 || ms[i].At != ms[0].At || ms[i].Quote != nil {
			t.Errorf("heard %q", h.said())
		}
	}
}

// What is said without being asked comes with the next answer, also after a
// restart, once. Files are named.
func TestNotes(t *testing.T) {
	s := fresh()
	h := start(t, s, nil)
	k := h.talk("k-ann")
	k.user = "work"
	k.say("hello")
	h.send(chat.Reply{ID: "tool:1", To: h.messages()[0].At, Text: "The oven is hot.", Files: []chat.File{{Path: "out/cake.png"}}})
	h.down()
	h = start(t, s, nil)
	k.h, k.client = h, h.client("k-ann")
	same(t, "answer", k.say("and?"), "You said: and?\n\nThe oven is hot.\n\n[file: cake.png]")
	same(t, "the next", k.say("and?"), "You said: and?")
	for i := range 51 { // what nobody comes for is parked when it becomes too much
		h.send(chat.Reply{ID: fmt.Sprint("tool:more", i), To: h.messages()[0].At, Text: "Tick."})
	}
	h.until(func() bool {
		parked, err := h.hub.DeadLetters().List(t.Context())
		return err == nil && len(parked) == 1
	})
	same(t, "all at once", strings.Count(k.say("and?"), "Tick."), 50)
}

// A turn that ends without words is an answer, too.
func TestNoWords(t *testing.T) {
	h := start(t, fresh(), func(h *testGateway, m chat.Message) { h.reply(m, "") })
	same(t, "answer", h.talk("k-ann").say("hush"), "")
}

// /stop has no answer of its own: it ends with the turn that it stops.
func TestStop(t *testing.T) {
	stop := make(chan string, 1)
	h := start(t, fresh(), func(h *testGateway, m chat.Message) {
		if m.Text == "/stop" {
			stop <- m.ID
			return
		}
		r := m.Reply()
		r.Text = "Stopped."
		r.Also = []string{<-stop}
		h.send(r)
	})
	body := `{"model":"parley","user":"u","messages":[{"role":"user","content":%q}]}`
	got := make(chan string, 2)
	go func() { r, _ := h.do(t.Context(), "k-ann", fmt.Sprintf(body, "think hard"), nil); got <- r.body }()
	h.until(func() bool { return len(h.messages()) == 1 })
	go func() { r, _ := h.do(t.Context(), "k-ann", fmt.Sprintf(body, "/stop"), nil); got <- r.body }()
	for range 2 {
		if b := <-got; !strings.Contains(b, "Stopped.") {
			t.Errorf("got %s", b)
		}
	}
}

// P16: those who wait when the gateway ends are told to come again, and then get
// the answer that was made meanwhile.
func TestShutdown(t *testing.T) {
	s := fresh()
	h := start(t, s, func(*testGateway, chat.Message) {})
	body := `{"model":"parley","stream":%v,"messages":[{"role":"user","content":"hello %d"}]}`
	got := make(chan result, 200)
	for i := range 200 {
		go func() {
			r, err := h.do(t.Context(), "k-ann", fmt.Sprintf(body, i%2 == 0, i), map[string]string{"Idempotency-Key": "k"})
			if err != nil {
				t.Error(err)
			}
			got <- r
		}()
	}
	h.until(func() bool { return len(h.messages()) == 200 })
	h.down()
	for range 200 {
		r := <-got
		if !strings.Contains(r.body, `"type":"server_error"`) || strings.Contains(r.body, "[DONE]") || r.StatusCode != 503 && r.StatusCode != 200 {
			t.Errorf("%d: %s", r.StatusCode, r.body)
		}
	}
	again := start(t, s, nil)
	again.heard = h.messages() // as the inbox does
	again.work.Go(func() { again.reply(h.messages()[0], "late") })
	n := 0
	if _, err := fmt.Sscanf(h.messages()[0].Text, "hello %d", &n); err != nil {
		t.Fatal(err)
	}
	r := again.post("k-ann", fmt.Sprintf(body, false, n), map[string]string{"Idempotency-Key": "k"})
	if !strings.Contains(r.body, `"late"`) {
		t.Errorf("got %s", r.body)
	}
}

// A long answer: signs of life keep proxies from hanging up, and a wait has an end.
func TestWait(t *testing.T) {
	for _, stream := range []bool{true, false} {
		timetest.Test(t, func(t *testing.T) {
			c := api.New(api.Config{Name: "api", Store: mem.New(), Log: quiet})
			ctx, stop := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer stop()
			go func() { _ = c.Run(ctx, func(context.Context, chat.Message) error { return nil }) }()
			synctest.Wait()
			body := fmt.Sprintf(`{"model":"parley","stream":%v,"messages":[{"role":"user","content":"hi"}]}`, stream)
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w, began := httptest.NewRecorder(), time.Now()
			c.Serve(w, r, chat.Sender{ID: "ann"}, "")
			if took := time.Since(began); took != time.Hour || !strings.Contains(w.Body.String(), `"code":"timeout"`) {
				t.Errorf("after %v: %d %s", took, w.Code, w.Body)
			}
			if n := strings.Count("\n"+strings.ReplaceAll(w.Body.String(), "\n", "\n\n"), "\n:\n"); stream && n < 170 {
				t.Errorf("%d signs of life in an hour", n)
			}
			same(t, "status", w.Code, map[bool]int{true: 200, false: 504}[stream])
		})
	}
}

// P2, P3, P19: whatever is not written, a client that asks again under its key
// gets its one answer, and goes on in the same conversation.
func TestFaultAnywhere(t *testing.T) {
	for at := 1; ; at++ {
		f := &faulty{Store: mem.New(), left: at}
		h := &testGateway{t: t, store: f, saved: map[string]string{}}
		h.open()
		ctx, stop := context.WithCancel(t.Context())
		var live sync.WaitGroup
		turns := map[string]int{}
		live.Go(func() {
			_ = h.api.Run(ctx, func(_ context.Context, m chat.Message) error {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.heard = append(h.heard, m)
				if turns[m.Key()]++; turns[m.Key()] > 1 {
					return nil
				}
				live.Go(func() {
					r := m.Reply()
					r.Text = "You said: " + m.Text
					for {
						if _, err := h.api.Send(ctx, r); err == nil {
							return
						}
					}
				})
				return nil
			})
		})
		h.until(func() bool {
			return h.post("k-ann", `{"model":"parley","messages":[{"role":"user","content":"/ping"}]}`, nil).StatusCode == 200
		})
		h.mu.Lock()
		h.heard = nil
		h.mu.Unlock()
		f.arm()
		said := `{"role":"user","content":"one"}`
		for i, text := range []string{"one", "two"} {
			h.until(func() bool {
				r := h.post("k-ann", `{"model":"parley","messages":[`+said+`]}`, map[string]string{"Idempotency-Key": fmt.Sprint(i)})
				return r.StatusCode == 200 && strings.Contains(r.body, `"You said: `+text+`"`)
			})
			said += `,{"role":"assistant","content":"You said: one"},{"role":"user","content":"two"}`
		}
		stop()
		live.Wait()
		h.server.Close()
		http.DefaultClient.CloseIdleConnections()
		h.mu.Lock()
		for key, n := range turns {
			if first := h.heard[0]; len(turns) != 3 || h.heard[len(h.heard)-1].At != first.At {
				t.Errorf("fault %d: %s came %d times, of %d: %+v", at, key, n, len(turns), h.heard)
			}
		}
		h.mu.Unlock()
		if n := f.ops(); at > n { // no fault came: there are no more places for one
			if n < 15 {
				t.Errorf("only %d places for a fault", n)
			}
			return
		}
	}
}

// A faulty store does not write once, after so many times that it did.
type faulty struct {
	store.Store
	mu    sync.Mutex
	armed bool
	left  int
	n     int
}

func (f *faulty) arm() { f.mu.Lock(); f.armed = true; f.mu.Unlock() }
func (f *faulty) ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

func (f *faulty) hit() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed {
		return nil
	}
	f.n++
	if f.left--; f.left == 0 {
		return store.ErrFull
	}
	return nil
}

func (f *faulty) Bucket(name string) store.Bucket { return faultyBucket{f.Store.Bucket(name), f} }

type faultyBucket struct {
	store.Bucket
	f *faulty
}

func (b faultyBucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	if err := b.f.hit(); err != nil {
		return 0, err
	}
	return b.Bucket.Put(ctx, key, val, rev)
}

func (b faultyBucket) Delete(ctx context.Context, key string) error {
	if err := b.f.hit(); err != nil {
		return err
	}
	return b.Bucket.Delete(ctx, key)
}

func (b faultyBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := b.f.hit(); err != nil {
		return nil, 0, err
	}
	return b.Bucket.Get(ctx, key)
}

// A body that never ends is cut off.
func TestLarge(t *testing.T) {
	c := api.New(api.Config{Name: "api", Store: mem.New(), Log: quiet})
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", io.MultiReader(strings.NewReader(`{"model":"`), endless{}))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	c.Serve(w, r, chat.Sender{ID: "ann"}, "")
	if w.Code != 413 || !strings.Contains(w.Body.String(), "request_too_large") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A gate is a reader of nothing, at which whoever reads waits until it is opened.
type gate struct{ reached, open chan struct{} }

func (g gate) Read([]byte) (int, error) {
	close(g.reached)
	<-g.open
	return 0, io.EOF
}

// Bodies that come in are bounded in sum, for each person and in all. Who is over
// that is told to come again, and may once there is room; pictures do not count.
func TestBudget(t *testing.T) {
	const person, all = 1000, 1500
	budget := network.NewBudget(all, person)
	c := api.New(api.Config{Name: "api", Store: mem.New(), Dir: t.TempDir(), Budget: budget, Log: quiet})
	head := `{"model":"nobody","user":"` + strings.Repeat("x", 700)
	tail := `","messages":[{"role":"user","content":[{"type":"image_url","image_url":` +
		`{"url":"data:image/gif;base64,` + strings.Repeat("AAAA", 1000) + `"}}]}]}`
	serve := func(who, prefix string, body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions", body)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		c.Serve(w, r, chat.Sender{ID: who}, prefix)
		return w
	}
	// hold sends a request up to its pictures. What it has sent counts until finish
	// has sent the rest.
	hold := func(who string) (finish func() *httptest.ResponseRecorder) {
		g := gate{make(chan struct{}), make(chan struct{})}
		done := make(chan *httptest.ResponseRecorder, 1)
		go func() { done <- serve(who, "", io.MultiReader(strings.NewReader(head), g, strings.NewReader(tail))) }()
		select {
		case <-g.reached: // what was read before has been counted
		case w := <-done:
			t.Fatalf("%s: %d %s", who, w.Code, w.Body)
		}
		return func() *httptest.ResponseRecorder {
			close(g.open)
			return <-done
		}
	}
	refused := func(who, prefix string, status int) {
		t.Helper()
		w := serve(who, prefix, strings.NewReader(head+tail))
		if w.Code != status || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s with prefix %q: %d, %s", who, prefix, w.Code, w.Body)
		}
	}
	ann := hold("ann")
	refused("ann", "", http.StatusTooManyRequests)
	bob := hold("bob")
	refused("ann", "other", http.StatusTooManyRequests) // a key more is no person more
	refused("eve", "", http.StatusServiceUnavailable)
	for who, finish := range map[string]func() *httptest.ResponseRecorder{"ann": ann, "bob": bob} {
		if w := finish(); w.Code != http.StatusBadRequest { // its image is none
			t.Errorf("%s: %d %s", who, w.Code, w.Body)
		}
	}
	for _, who := range []string{"ann", "eve"} {
		if w := serve(who, "", strings.NewReader(head+tail)); w.Code != http.StatusBadRequest {
			t.Errorf("%s comes again: %d %s", who, w.Code, w.Body)
		}
	}
}

// A request of very many tiny messages or parts takes many times its bytes of
// memory: it is refused when there are too many.
func TestManyParts(t *testing.T) {
	h := bare(t)
	t.Cleanup(h.server.Close)
	const said = `{"role":"user","content":"hi"}`
	for what, body := range map[string]string{
		"parts":    `{"model":"parley","messages":[{"role":"user","content":[` + strings.Repeat("{},", 10_000) + `{"type":"text","text":"hi"}]}]}`,
		"messages": `{"model":"parley","messages":[` + strings.Repeat("{},", 10_000) + said + `]}`,
	} {
		if r := h.post("k-ann", body, nil); r.StatusCode != 413 || !strings.Contains(r.body, "more than 10000 messages") {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// What a request brings along counts as what a person sends, as far as it is kept:
// what was said before, where a conversation begins, and pictures of a command.
func TestWhatIsKeptCounts(t *testing.T) {
	const most = 1000
	h := bare(t)
	var counted []int64
	h.api = api.New(api.Config{Name: "api", Store: h.store, Save: h.save, Dir: t.TempDir(), Log: quiet, TakeBytes: func(_ context.Context, _ chat.Person, bytes int64) error {
		counted = append(counted, bytes)
		return &chat.Refusal{Text: "enough for today"}
	}})
	t.Cleanup(h.server.Close)
	long := strings.Repeat("x", most)
	for what, messages := range map[string]string{
		"instructions":         `{"role":"system","content":"` + long + `"},{"role":"user","content":"hi"}`,
		"history":              `{"role":"user","content":"` + long + `"},{"role":"assistant","content":"yes"},{"role":"user","content":"hi"}`,
		"tools":                `{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"a","description":"` + long + `"}}],"stop":["a"`,
		"format":               `{"role":"user","content":"hi"}],"response_format":{"type":"json_object","x":"` + long + `"},"stop":["a"`,
		"command with history": `{"role":"system","content":"` + long + `"},{"role":"user","content":"/help"}`,
		"command with picture": `{"role":"user","content":[{"type":"text","text":"/help"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,` + base64.StdEncoding.EncodeToString([]byte("GIF89a"+long)) + `"}}]}`,
	} {
		counted = nil
		r := h.post("k-ann", `{"model":"parley","messages":[`+messages+`]}`, nil)
		if r.StatusCode != 429 && r.StatusCode != 507 || len(counted) != 1 || counted[0] < most {
			t.Errorf("%s: %d %s; counted %d", what, r.StatusCode, r.body, counted)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// Pictures of requests that come in are on the disk, and bounded there.
func TestPicturesComingIn(t *testing.T) {
	h := bare(t)
	h.api = api.New(api.Config{Name: "api", Store: h.store, Save: h.save, Dir: t.TempDir(), Bodies: network.NewBudget(1<<20, 10_000), Log: quiet})
	t.Cleanup(h.server.Close)
	body := func(bytes int) string {
		return `{"model":"nobody","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,` + strings.Repeat("AAAA", bytes/4) + `"}}]}]}`
	}
	for range 3 { // what was counted is given back
		if r := h.post("k-ann", body(20_000), nil); r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
		if r := h.post("k-ann", body(5_000), nil); r.StatusCode == 429 {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// What is not an image is limited to what a person can have to say.
func TestLongText(t *testing.T) {
	h := bare(t)
	t.Cleanup(h.server.Close)
	r := h.post("k-ann", `{"model":"parley","messages":[{"role":"user","content":"`+strings.Repeat("x", 5<<20)+`"}]}`, nil)
	if r.StatusCode != 413 || !strings.Contains(r.body, "request_too_large") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	http.DefaultClient.CloseIdleConnections()
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Rig {
		h := bare(t)
		var said sync.WaitGroup
		ctx, stop := context.WithCancel(context.Background())
		t.Cleanup(func() { stop(); said.Wait(); h.server.Close(); http.DefaultClient.CloseIdleConnections() })
		n := 0
		return channeltest.Rig{Channel: h.api, At: chat.Address{Channel: "api", Chat: "ann"}, Keeps: true, Say: func(text string) {
			n++
			key := map[string]string{"Idempotency-Key": fmt.Sprint(n)}
			body := fmt.Sprintf(`{"model":"parley","messages":[{"role":"user","content":%q}]}`, text)
			said.Go(func() {
				for ctx.Err() == nil {
					if r, err := h.do(ctx, "k-ann", body, key); err == nil && r.StatusCode == 200 {
						return
					}
				}
			})
		}}
	})
}
