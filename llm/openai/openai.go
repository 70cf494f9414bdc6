// Package openai asks any endpoint that speaks OpenAI's chat completions,
// through go-openai. What vendors do differently is evened out here.
package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"parley/llm"
)

// Config says whom to ask, and how.
type Config struct {
	Name        string   // the model's name in config.json
	BaseURL     string   `json:"baseUrl" url:"http https" optional:"yes"` // "" means OpenAI's own
	APIKey      string   `json:"apiKey" secret:"yes"`
	Model       string   `json:"model" plain:"yes"`           // as the provider names it
	MaxTokens   int      `json:"maxTokens"`                   // of one answer; 0 leaves it to the provider
	Temperature *float64 `json:"temperature" from:"0" to:"2"` // nil leaves it to the provider
	Vision      *bool    `json:"vision"`                      // whether it sees pictures; nil: as Model's name tells

	Transport http.RoundTripper // nil means one of our own
}

const defaultURL = "https://api.openai.com/v1"

const (
	maxAnswer = 4 << 20     // bytes of one answer
	maxIdle   = time.Minute // how long an answer that has begun may pause (P11)
	// how long the provider may think, keep-alive comments or none, before each piece of
	// an answer
	maxSilent = 5 * time.Minute
	maxAdapts = 3 // parameters dropped at the provider's wish before giving up
)

// New returns the model that c describes. It does no I/O.
func New(c Config) llm.Model {
	m := &model{Config: c.whole()}
	m.profile.Store(profileOf(c.Model))
	return m
}

// whole is c with what it leaves to us.
func (c Config) whole() Config {
	c.APIKey = strings.TrimSpace(c.APIKey)
	if c.BaseURL == "" {
		c.BaseURL = defaultURL
	}
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 64
		c.Transport = t
	}
	return c
}

type model struct {
	Config
	profile atomic.Pointer[profile] // the parameters that the provider takes, as far as we have learnt
}

// Generate implements llm.Model. Where the provider refuses a parameter by
// name it is left out from then on.
func (m *model) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
	for n := 0; ; n++ {
		p := m.profile.Load()
		msg, err := m.ask(ctx, p, req, stream)
		if err == nil {
			return msg, nil
		}
		if ctx.Err() != nil {
			return llm.Message{}, ctx.Err()
		}
		e := m.failure(err)
		next := p.without(e)
		if next == nil || n == maxAdapts {
			return llm.Message{}, e
		}
		m.profile.Store(next)
	}
}

// ask sends req once and reads the whole answer.
func (m *model) ask(ctx context.Context, p *profile, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
	w := newWatch(ctx)
	defer w.stop()
	x := &exchange{transport: m.Transport, watch: w}
	c := openai.DefaultConfig(m.APIKey)
	c.BaseURL, c.HTTPClient = m.BaseURL, x
	s, err := openai.NewClientWithConfig(c).CreateChatCompletionStream(w.ctx, p.request(m.Config, req))
	if err != nil {
		return llm.Message{}, w.blame(err)
	}
	defer s.Close()
	a := &answer{stream: stream, said: req.Messages}
	if err := a.read(s, w); err != nil {
		return llm.Message{}, w.blame(err)
	}
	msg, err := a.message(x.body.done)
	msg.Model = m.Name
	return msg, err
}

// failure makes err an *llm.Error that names the model and holds no secret (R-S26).
func (c Config) failure(err error) *llm.Error {
	e := &llm.Error{Kind: llm.BadRequest, Err: err}
	if found, ok := errors.AsType[*llm.Error](err); ok {
		clone := *found
		e = &clone
	}
	if bad, ok := errors.AsType[*url.Error](e.Err); ok { // its text holds the whole URL
		e.Err = fmt.Errorf("baseUrl: %w", bad.Err)
	}
	if said := e.Err.Error(); masked(said, c.APIKey) != said {
		e.Err = errors.New(masked(said, c.APIKey))
	}
	if c.Name != "" {
		e.Err = fmt.Errorf("%s: %w", c.Name, e.Err)
	}
	return e
}

// read takes in the stream until it ends. What goes wrong after the provider
// has said that the answer is whole does not matter any more.
func (a *answer) read(s *openai.ChatCompletionStream, w *watch) error {
	for {
		raw, err := s.RecvRaw()
		if err == nil {
			err = a.add(raw)
		}
		switch {
		case errors.Is(err, io.EOF) || err != nil && a.finish != "":
			return nil
		case err != nil:
			return err
		case a.finish != "":
			w.hurry(afterFinish)
		}
	}
}
