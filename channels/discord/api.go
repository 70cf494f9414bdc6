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
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
)

const (
	requestTimeout = 30 * time.Second // of one request (P9)
	uploadTimeout  = 5 * time.Minute  // of one with files
	maxAnswer      = 16 << 20         // bytes of one answer of the API
	maxShortWait   = 2 * time.Second  // a rate limit that ends within it is waited for, once
	minRetryAfter  = 0.1              // seconds
	maxRetryAfter  = 24 * 60 * 60.0   // seconds

	requestRate  = 45 // requests per second
	requestBurst = 20

	userAgent = "DiscordBot (https://github.com/bwmarrin/discordgo, 0.29.0) Parley"
)

// Codes of Discord's errors.
const (
	codeUnknownChannel = 10003
	codeUnknownMessage = 10008
	codeTooLarge       = 40005
	codeAcknowledged   = 40060
)

// An apiError is an answer of the API that refuses a request, or the reason why
// Discord closed a connection to the gateway.
type apiError struct {
	status     int           // of the answer, or the code with which the connection was closed
	Code       int           `json:"code"`
	Text       string        `json:"message"`
	RetryAfter float64       `json:"retry_after"` // seconds
	retryAfter time.Duration // with status 429
}

// Error implements error.
func (e *apiError) Error() string {
	return fmt.Sprintf("%s (%d)", e.Text, cmp.Or(e.Code, e.status))
}

// hasCode reports whether err is an apiError with one of those codes.
func hasCode(err error, codes ...int) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && (slices.Contains(codes, e.Code) || slices.Contains(codes, e.status))
}

// A botAPI is one bot's access to Discord's HTTP API. The library's own waits
// regardless of the context and retries without end.
type botAPI struct {
	http    *http.Client
	clock   *network.ServerClock // Discord's, as its answers tell it
	pace    *rate.Limiter
	channel string // name in config.json, for advice
	url     string
	token   string
}

func newBotAPI(cfg *Config) *botAPI {
	a := &botAPI{
		http:    cmp.Or(cfg.Client, network.NewClient(nil)),
		clock:   &network.ServerClock{},
		pace:    rate.NewLimiter(requestRate, requestBurst),
		channel: cfg.Name,
		url:     cfg.APIURL,
		token:   cfg.Token,
	}
	a.clock.Watch(a.http)
	return a
}

// A requestBody is what a request with files carries. It can be sent once.
type requestBody struct {
	content     io.Reader
	contentType string
	size        int64
}

// call makes a request and decodes its answer into out, unless out is nil. in is
// nil, a *requestBody, or a value to be sent as JSON. A rate limit that ends soon
// is waited for; for others the error says how long to wait.
func (a *botAPI) call(ctx context.Context, method, path string, in, out any) error {
	err := a.attempt(ctx, method, path, in, out)
	e, _ := errors.AsType[*apiError](err)
	_, usedUp := in.(*requestBody)
	if usedUp || e == nil || e.retryAfter == 0 || e.retryAfter > maxShortWait {
		return err
	}
	channels.Sleep(ctx, e.retryAfter)
	return a.attempt(ctx, method, path, in, out)
}

// attempt is call without another attempt.
func (a *botAPI) attempt(ctx context.Context, method, path string, in, out any) error {
	body, timeout, err := newRequestBody(in)
	if err != nil {
		return err
	}
	if err := a.pace.Wait(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, body.content)
	if err != nil {
		return err
	}
	if in != nil {
		req.ContentLength = body.size
		req.Header.Set("Content-Type", body.contentType)
	}
	req.Header.Set("Authorization", "Bot "+a.token)
	req.Header.Set("User-Agent", userAgent)
	resp, err := a.http.Do(req)
	if err != nil {
		return network.Bare(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return network.Bare(err)
	}
	if resp.StatusCode/100 != 2 {
		return newAPIError(resp, answer)
	}
	if out != nil && json.Unmarshal(answer, out) != nil {
		return fmt.Errorf("the server answered %s, and not as Discord's API does", resp.Status)
	}
	return nil
}

// newRequestBody returns the body for the in of call, and how long the request may take.
func newRequestBody(in any) (*requestBody, time.Duration, error) {
	if in == nil {
		return &requestBody{content: http.NoBody}, requestTimeout, nil
	}
	if body, ok := in.(*requestBody); ok {
		return body, uploadTimeout, nil
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, 0, err
	}
	body := &requestBody{content: bytes.NewReader(raw), contentType: "application/json", size: int64(len(raw))}
	return body, requestTimeout, nil
}

// newAPIError reads an answer that refuses a request.
func newAPIError(resp *http.Response, answer []byte) error {
	e := &apiError{}
	if json.Unmarshal(answer, e) != nil {
		e.Text = "not an answer of Discord's API"
	}
	e.status = resp.StatusCode
	if e.status == http.StatusTooManyRequests {
		header, _ := strconv.ParseFloat(resp.Header.Get("Retry-After"), 64) // a proxy's answer has no body
		seconds := min(max(cmp.Or(e.RetryAfter, header), minRetryAfter), maxRetryAfter)
		e.retryAfter = time.Duration(seconds * float64(time.Second))
	}
	return e
}

// download returns the content of a file that somebody sent.
func (a *botAPI) download(ctx context.Context, f chat.File) (io.ReadCloser, error) {
	ref := strings.Split(f.Ref, "/") // channel, message, file
	invalid := func(id string) bool { return !snowflake.MatchString(id) }
	if len(ref) != 3 || slices.ContainsFunc(ref, invalid) {
		return nil, channels.ForGood("%q names no file of discord", f.Ref)
	}
	var w message
	if err := a.call(ctx, "GET", "/channels/"+ref[0]+"/messages/"+ref[1], nil, &w); err != nil {
		return nil, a.channelError("find the file", err)
	}
	files := w.Files
	for _, s := range w.Snapshots {
		files = append(files, s.Message.Files...)
	}
	i := slices.IndexFunc(files, func(f file) bool { return f.ID == ref[2] })
	if i < 0 {
		return nil, channels.ForGood("the file is no longer in its message")
	}
	return network.Download(ctx, a.http, files[i].URL)
}

// redact returns err without the bot's token (R-S26).
func (a *botAPI) redact(err error) error { return network.Plainly(err, a.token) }

// channelError returns err, which occurred while doing that, as a
// *channels.Error if it is known whether to try again.
func (a *botAPI) channelError(doing string, err error) error {
	if err == nil {
		return nil
	}
	redacted := fmt.Errorf("%s: %w", doing, a.redact(err))
	if e, ok := errors.AsType[*channels.Error](err); ok && e.Permanent {
		return channels.ForGood("%w", redacted)
	}
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		return redacted
	}
	if e.retryAfter > 0 {
		return &channels.Error{After: e.retryAfter, Err: redacted}
	}
	temporary := e.status == http.StatusUnauthorized || e.status == http.StatusRequestTimeout
	if e.status/100 == 4 && !temporary {
		return channels.ForGood("%w", redacted)
	}
	return redacted
}

// adviseOn returns what the operator can do about err, where that is known.
func (a *botAPI) adviseOn(err error) error {
	switch {
	case hasCode(err, http.StatusUnauthorized, closeBadToken):
		return fmt.Errorf("discord refuses the token of channels.%s: it was reset or mistyped:"+
			" copy it anew from https://discord.com/developers/applications, under Bot", a.channel)
	case hasCode(err, closeBadIntents):
		return a.intentError()
	case hasCode(err, http.StatusNotFound):
		return fmt.Errorf("no Discord at %s: check apiUrl of channels.%s", a.url, a.channel)
	}
	return fmt.Errorf("call discord: %w", a.redact(err))
}

// intentError is the error of a bot that may not read what people write.
func (a *botAPI) intentError() error {
	return fmt.Errorf("discord does not let the bot of channels.%s read messages:"+
		" switch on Message Content Intent at https://discord.com/developers/applications, under Bot", a.channel)
}
