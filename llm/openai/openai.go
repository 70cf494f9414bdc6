// Package openai asks any endpoint that speaks OpenAI's chat completions, through
// go-openai. It evens out the differences between vendors.
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

const defaultURL = "https://api.openai.com/v1"

const (
	maxAnswer     = 4 << 20 // bytes of one answer
	maxIdleConns  = 64      // to one server
	maxAdaptions  = 3       // parameters that are left out, as the provider asks, before giving up
	maxIdle       = time.Minute
	maxSilence    = 5 * time.Minute
	finishTimeout = 2 * time.Second       // for the token count, once the answer is whole
	drainTimeout  = 20 * time.Millisecond // for the end of the body, so that the connection can be used again
)

// New returns the model that c describes. It does no I/O.
func New(c Config) llm.Model {
	m := &model{cfg: c.withDefaults()}
	m.profile.Store(newProfile(c.Model))
	return m
}

type model struct {
	cfg     Config
	tools   toolList
	profile atomic.Pointer[profile] // the parameters that the provider is known to accept
}

// Generate implements llm.Model. A parameter that the provider refuses by name is
// left out from then on.
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
		e := m.cfg.newError(err)
		adapted := p.without(e)
		if adapted == nil || n == maxAdaptions {
			return llm.Message{}, e
		}
		m.profile.Store(adapted)
	}
}

// ask sends req once and reads the whole answer.
func (m *model) ask(ctx context.Context, p *profile, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
	w := newWatchdog(ctx)
	defer w.stop()
	tools, err := m.tools.encode(req.Tools)
	if err != nil {
		return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Err: err}
	}
	out, err := p.newRequest(m.cfg, req)
	if err != nil {
		return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Err: err}
	}
	t := &transport{base: m.cfg.Transport, tools: tools, watchdog: w}
	s, err := m.cfg.client(t).CreateChatCompletionStream(w.ctx, out)
	if err != nil {
		return llm.Message{}, w.causeOf(err)
	}
	defer s.Close()
	a := &answer{stream: stream, history: req.Messages}
	if err := a.read(s, w); err != nil {
		return llm.Message{}, w.causeOf(err)
	}
	msg, err := a.message(t.body.done)
	msg.Model = m.cfg.Name
	return msg, err
}

// client returns go-openai's client, which sends through t.
func (c Config) client(t *transport) *openai.Client {
	config := openai.DefaultConfig(c.APIKey)
	config.BaseURL = c.BaseURL
	config.HTTPClient = t
	return openai.NewClientWithConfig(config)
}

// newError makes err an *llm.Error that names the model and holds no secret (R-S26).
func (c Config) newError(err error) *llm.Error {
	e := &llm.Error{Kind: llm.BadRequest, Err: err}
	if found, ok := errors.AsType[*llm.Error](err); ok {
		clone := *found
		e = &clone
	}
	if bad, ok := errors.AsType[*url.Error](e.Err); ok { // its text holds the whole URL
		e.Err = fmt.Errorf("baseUrl: %w", bad.Err)
	}
	text := e.Err.Error()
	if masked := maskKey(text, c.APIKey); masked != text {
		e.Err = errors.New(masked)
	}
	if c.Name != "" {
		e.Err = fmt.Errorf("%s: %w", c.Name, e.Err)
	}
	return e
}

// withDefaults returns c with our values for what it leaves open.
func (c Config) withDefaults() Config {
	c.APIKey = strings.TrimSpace(c.APIKey)
	if c.BaseURL == "" {
		c.BaseURL = defaultURL
	}
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = maxIdleConns
		c.Transport = t
	}
	return c
}

// read reads the stream until it ends. Errors after the provider has finished the
// answer do not matter.
func (a *answer) read(s *openai.ChatCompletionStream, w *watchdog) error {
	for {
		err := a.readChunk(s)
		if errors.Is(err, io.EOF) || err != nil && a.finish != "" {
			return nil
		}
		if err != nil {
			return err
		}
		if a.finish != "" {
			w.shorten(finishTimeout)
		}
	}
}

func (a *answer) readChunk(s *openai.ChatCompletionStream) error {
	raw, err := s.RecvRaw()
	if err != nil {
		return err
	}
	return a.add(raw)
}
