package discord

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/channels"
)

const (
	callTime   = 30 * time.Second // of one request (P9)
	uploadTime = 5 * time.Minute  // of one with files
	maxAnswer  = 16 << 20         // bytes of one answer of the API
	maxTold    = 500              // bytes of an error, which may quote an answer
	worthWait  = 2 * time.Second  // a limit that ends within it is waited for
)

// A refusal is an answer of the API that says no.
type refusal struct {
	status int
	Code   int           `json:"code"`
	Text   string        `json:"message"`
	After  float64       `json:"retry_after"` // seconds
	Global bool          `json:"global"`
	after  time.Duration // with status 429
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%d %s: %s (%d)", r.status, http.StatusText(r.status), r.Text, r.Code)
}

// A body is what a request carries.
type body struct {
	io.Reader
	kind string
	size int64
}

func jsonBody(v any) (*body, error) {
	raw, err := json.Marshal(v)
	return &body{bytes.NewReader(raw), "application/json", int64(len(raw))}, err
}

// call does one request to the API and reads its answer into out, unless that
// is nil. in is nil, a *body, or JSON in the making. The library's way of doing
// it waits without regard to ctx and tries again without being asked.
func (c *Channel) call(ctx context.Context, method, path string, in, out any) (err error) {
	b, _ := in.(*body)
	patience := uploadTime
	if b == nil {
		patience = callTime
		if b, err = jsonBody(in); err != nil {
			return err
		}
	}
	if err := c.pace.wait(ctx, route(method, path)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.cfg.APIURL+path, b)
	if err != nil {
		return err
	}
	if in == nil {
		req.Body = nil
	} else {
		req.ContentLength = b.size
		req.Header.Set("Content-Type", b.kind)
	}
	req.Header.Set("Authorization", "Bot "+c.cfg.Token)
	req.Header.Set("User-Agent", "DiscordBot (https://github.com/bwmarrin/discordgo, 0.29.0) Parley")
	resp, err := c.http.Do(req)
	if err != nil {
		return bare(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return bare(err)
	}
	if resp.StatusCode/100 != 2 {
		return c.pace.refused(route(method, path), resp, answer)
	}
	c.pace.learn(route(method, path), resp.Header)
	if out == nil {
		return nil
	}
	if json.Unmarshal(answer, out) != nil {
		return fmt.Errorf("the server answered %s, and not as Discord's API does", resp.Status)
	}
	return nil
}

// bare returns err without the address, which may hold the token of an interaction.
func bare(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}

// plainly returns err without the bot's token, and cut short (R-S26). Of its
// causes only the end of a context is kept.
func (c *Channel) plainly(err error) error {
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return end
		}
	}
	text := strings.ReplaceAll(err.Error(), c.cfg.Token, "***")
	return errors.New(strings.ToValidUTF8(text[:min(len(text), maxTold)], ""))
}

// refused turns an error of call into one of a channel.
func (c *Channel) refused(doing string, err error) error {
	if err == nil {
		return nil
	}
	said := fmt.Errorf("%s: %w", doing, c.plainly(err))
	if held, ok := errors.AsType[*channels.Error](err); ok {
		return &channels.Error{Permanent: held.Permanent, After: held.After, Err: said}
	}
	no, ok := errors.AsType[*refusal](err)
	switch {
	case !ok:
		return said
	case no.status == http.StatusTooManyRequests:
		return &channels.Error{After: no.after, Err: said}
	case no.status/100 == 4 && no.status != http.StatusUnauthorized && no.status != http.StatusRequestTimeout:
		return &channels.Error{Permanent: true, Err: said}
	}
	return said
}

// said reports whether err is a refusal with one of those codes.
func said(err error, codes ...int) bool {
	no, ok := errors.AsType[*refusal](err)
	for _, code := range codes {
		if ok && (no.Code == code || no.status == code) {
			return true
		}
	}
	return false
}

// A pace keeps to what Discord allows: 50 requests per second in all, and for
// each route what its answers say.
type pace struct {
	all *rate.Limiter

	mu     sync.Mutex
	closed map[string]time.Time // by route, and "" for all: when Discord takes the next request
}

func newPace() *pace {
	return &pace{all: rate.NewLimiter(45, 20), closed: map[string]time.Time{}}
}

// route names what shares a limit: the method and the chat, and reactions apart.
func route(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	if len(parts) > 5 && parts[5] == "reactions" {
		return "reactions/" + parts[2]
	}
	return method + strings.Join(parts[:min(4, len(parts))], "/")
}

// wait returns when a request of that route may be done, which is soon: where
// Discord wants to be left alone it returns an error at once.
func (p *pace) wait(ctx context.Context, route string) error {
	p.mu.Lock()
	d := max(time.Until(p.closed[route]), time.Until(p.closed[""]))
	p.mu.Unlock()
	if d > worthWait {
		return &channels.Error{After: d, Err: errors.New("discord wants to be left alone")}
	}
	sleep(ctx, d)
	return p.all.Wait(ctx)
}

// learn notes what an answer says about the next requests.
func (p *pace) learn(route string, h http.Header) {
	after, err := strconv.ParseFloat(h.Get("X-RateLimit-Reset-After"), 64)
	if h.Get("X-RateLimit-Remaining") == "0" && err == nil {
		p.hold(route, seconds(after))
	}
}

// refused reads a refusal, and keeps to what it says of limits.
func (p *pace) refused(route string, resp *http.Response, answer []byte) error {
	no := &refusal{}
	if json.Unmarshal(answer, no) != nil {
		no.Text = "not an answer of Discord's API"
	}
	no.status = resp.StatusCode
	if no.status == http.StatusTooManyRequests {
		header, _ := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64) // a proxy's own has no body
		no.after = max(seconds(cmp.Or(no.After, header)), 100*time.Millisecond)
		if no.Global {
			route = ""
		}
		p.hold(route, no.after)
	}
	return no
}

func (p *pace) hold(route string, d time.Duration) {
	const many = 1024
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.closed) >= many {
		for route, until := range p.closed {
			if time.Now().After(until) {
				delete(p.closed, route)
			}
		}
	}
	p.closed[route] = time.Now().Add(d)
}

func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0), 24*60*60) * float64(time.Second))
}
