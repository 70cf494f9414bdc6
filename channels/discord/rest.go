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
	"strconv"
	"time"

	"parley/channels"
	"parley/channels/network"
)

const (
	callTime   = 30 * time.Second // of one request (P9)
	uploadTime = 5 * time.Minute  // of one with files
	maxAnswer  = 16 << 20         // bytes of one answer of the API
	worthWait  = 2 * time.Second  // a limit that ends within it is waited for, once
)

// A refusal is an answer of the API that says no, or the end of a connection to the gateway.
type refusal struct {
	status int           // or the code of the end
	Code   int           `json:"code"`
	Text   string        `json:"message"`
	After  float64       `json:"retry_after"` // seconds
	after  time.Duration // what is to be waited, with status 429
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s (%d)", r.Text, cmp.Or(r.Code, r.status))
}

// A body is what a request with files carries, once.
type body struct {
	io.Reader
	kind string
	size int64
}

// call does a request to the API and reads its answer into out, unless that is
// nil. in is nil, a *body, or JSON in the making. The library's way of doing it
// waits without regard to ctx and tries again without end; here whoever calls
// is told how long Discord wants to be left alone, unless that is soon over.
func (c *Channel) call(ctx context.Context, method, path string, in, out any) error {
	err := c.once(ctx, method, path, in, out)
	no, _ := errors.AsType[*refusal](err)
	if _, spent := in.(*body); spent || no == nil || no.after == 0 || no.after > worthWait {
		return err
	}
	channels.Sleep(ctx, no.after)
	return c.once(ctx, method, path, in, out)
}

func (c *Channel) once(ctx context.Context, method, path string, in, out any) error {
	b, patience := &body{Reader: http.NoBody}, callTime
	switch in := in.(type) {
	case nil:
	case *body:
		b, patience = in, uploadTime
	default:
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		b = &body{bytes.NewReader(raw), "application/json", int64(len(raw))}
	}
	if err := c.pace.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.cfg.APIURL+path, b.Reader)
	if err != nil {
		return err
	}
	if in != nil {
		req.ContentLength = b.size
		req.Header.Set("Content-Type", b.kind)
	}
	req.Header.Set("Authorization", "Bot "+c.cfg.Token)
	req.Header.Set("User-Agent", "DiscordBot (https://github.com/bwmarrin/discordgo, 0.29.0) Parley")
	resp, err := c.http.Do(req)
	if err != nil {
		return network.Bare(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return network.Bare(err)
	case resp.StatusCode/100 != 2:
		return refusalOf(resp, answer)
	case out != nil && json.Unmarshal(answer, out) != nil:
		return fmt.Errorf("the server answered %s, and not as Discord's API does", resp.Status)
	}
	return nil
}

// refusalOf reads an answer that says no.
func refusalOf(resp *http.Response, answer []byte) error {
	no := &refusal{}
	if json.Unmarshal(answer, no) != nil {
		no.Text = "not an answer of Discord's API"
	}
	if no.status = resp.StatusCode; no.status == http.StatusTooManyRequests {
		header, _ := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64) // a proxy's own has no body
		seconds := min(max(cmp.Or(no.After, header), 0.1), 24*60*60)
		no.after = time.Duration(seconds * float64(time.Second))
	}
	return no
}

// plainly returns err without the bot's token.
func (c *Channel) plainly(err error) error { return network.Plainly(err, c.cfg.Token) }

// refused turns an error of call into one of a channel.
func (c *Channel) refused(doing string, err error) error {
	if err == nil {
		return nil
	}
	said := fmt.Errorf("%s: %w", doing, c.plainly(err))
	no, ok := errors.AsType[*refusal](err)
	ours, never := errors.AsType[*channels.Error](err)
	switch {
	case never && ours.Permanent:
		return channels.ForGood("%w", said)
	case !ok:
		return said
	case no.after > 0:
		return &channels.Error{After: no.after, Err: said}
	case no.status/100 == 4 && no.status != http.StatusUnauthorized && no.status != http.StatusRequestTimeout:
		return channels.ForGood("%w", said)
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
