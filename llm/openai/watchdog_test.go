package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/llm/openai"
	"parley/timetest"
)

// A slowProvider is a provider within a bubble of synctest. It writes its texts one after the other.
type slowProvider struct {
	header time.Duration // when the answer begins
	every  time.Duration // between the texts, and before the first
	texts  []string
}

// RoundTrip implements http.RoundTripper. After the last text the body stays open.
func (l slowProvider) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := wait(req.Context(), l.header); err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		for _, s := range l.texts {
			if wait(req.Context(), l.every) != nil {
				break
			}
			_, _ = io.WriteString(w, s)
		}
		<-req.Context().Done()
		w.CloseWithError(req.Context().Err())
	}()
	return &http.Response{StatusCode: 200, Body: r, Header: http.Header{}}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	word = `data: {"choices":[{"delta":{"content":"word "}}]}` + "\n\n"
	stop = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
)

// P11: it is a failure if nothing arrives for 60 s once the answer has begun, or no
// chunk for 5 minutes. A slow model is not a failure, nor one that reads for minutes.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name string
		line slowProvider
		took time.Duration
		kind llm.Kind
	}{
		{"never begins", slowProvider{header: time.Hour}, 5 * time.Minute, llm.TimedOut},
		{"begins and says nothing", slowProvider{header: 59 * time.Second}, 5 * time.Minute, llm.TimedOut},
		{"begins late", slowProvider{header: 299 * time.Second, texts: []string{word, stop + "data: [DONE]\n\n"}}, 299 * time.Second, ""},
		{"begins at once and reads for long", slowProvider{every: 290 * time.Second, texts: []string{word + stop + "data: [DONE]\n\n"}}, 290 * time.Second, ""},
		{"comments, then silence", slowProvider{every: time.Second, texts: []string{": alive\n\n"}}, 61 * time.Second, llm.TimedOut},
		{"falls silent", slowProvider{every: time.Second, texts: []string{word, word}}, 62 * time.Second, llm.TimedOut},
		{"slow", slowProvider{every: 59 * time.Second, texts: []string{word, ": alive\n", word, "\n", word, stop + "data: [DONE]\n\n"}}, 6 * 59 * time.Second, ""},
		{"comments only", slowProvider{every: 10 * time.Second, texts: repeated(": alive\n\n", 1000)}, 5 * time.Minute, llm.TimedOut},
		{"long thought", slowProvider{every: 10 * time.Second, texts: append(repeated(": alive\n\n", 28), word, stop+"data: [DONE]\n\n")}, 300 * time.Second, ""},
		{"stays open after the end", slowProvider{every: time.Second, texts: []string{word, stop}}, 4 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				start := time.Now()
				m, err := openai.New(openai.Config{Name: "main", APIKey: key, Model: "x", Transport: c.line}).Generate(t.Context(), llmtest.Say("hi"), nil)
				took := time.Since(start).Round(time.Second) // reading on for the connection's sake takes 20 ms
				e, _ := errors.AsType[*llm.Error](err)
				if took != c.took || c.kind == "" && (err != nil || m.Text == "") || c.kind != "" && (e == nil || e.Kind != c.kind) {
					t.Fatalf("got %+v, %v after %v, want %q after %v", m, err, took, c.kind, c.took)
				}
			})
		})
	}
}

func repeated(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// P11: the whole chain: the first model falls silent, within its answer or from the
// start, and the second one answers in time.
func TestSilentModelIsReplaced(t *testing.T) {
	for name, silent := range map[string]slowProvider{"in mid-answer": {every: time.Second, texts: []string{word}}, "from the start": {header: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				dead := openai.New(openai.Config{Name: "main", Model: "x", Transport: silent})
				spare := &llmtest.Script{Name: "spare", Answers: []llmtest.Answer{llmtest.Text("here I am")}}
				m := llm.Limit(10 * time.Minute)(llm.Fallback(llm.Retry(dead), spare))
				var text strings.Builder
				got, err := m.Generate(t.Context(), llmtest.Say("hi"), func(d llm.Delta) {
					if d.Reset {
						text.Reset()
					}
					text.WriteString(d.Text)
				})
				if err != nil || got.Model != "spare" || text.String() != "here I am" {
					t.Fatalf("got %+v, %v, heard %q", got, err, text.String())
				}
			})
		})
	}
}
