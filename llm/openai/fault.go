package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/llm"
)

const (
	maxComplaint = 64 << 10 // bytes read of an error's body
	maxSaid      = 300      // characters kept of it
)

// A complaint is what a provider says of a request that it does not answer.
type complaint struct {
	text    string
	codes   string // code, type and the like: words for programs
	status  int    // where a code is an HTTP status
	serious bool   // it is surely an error, and no part of an answer
}

// complaintIn understands {"error":{"message":…}}, {"error":"…"},
// {"message":…}, {"detail":…}, those in a list, a last piece of an answer with
// finish_reason "error", web pages and plain text.
func complaintIn(body []byte) complaint {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return complaint{text: plain(string(body))}
	}
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	m, _ := v.(map[string]any)
	c := complaint{serious: m["object"] == "error"}
	if finishedWithError(m) {
		c.serious, c.text = true, "the provider ended the answer with an error"
	}
	switch e := m["error"].(type) {
	case map[string]any:
		c.serious = c.serious || len(e) > 0
		c.text, m = "", e
	case string:
		c.serious = c.serious || e != ""
		c.text = e
	}
	for _, key := range []string{"message", "detail", "msg"} {
		if c.text == "" && m[key] != nil {
			c.text = words(m[key])
		}
	}
	if meta, ok := m["metadata"].(map[string]any); ok && meta["raw"] != nil { // a router quotes the provider
		c.text += ": " + words(meta["raw"])
	}
	c.codes = fmt.Sprint(m["code"], " ", m["type"], " ", m["status"])
	c.status, _ = strconv.Atoi(fmt.Sprint(m["code"]))
	if c.text == "" {
		c.text = plain(string(body))
	}
	return c
}

func finishedWithError(m map[string]any) bool {
	choices, _ := m["choices"].([]any)
	for _, c := range choices {
		if choice, ok := c.(map[string]any); ok && choice["finish_reason"] == "error" {
			return true
		}
	}
	return false
}

func words(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func plain(body string) string {
	if strings.HasPrefix(strings.TrimSpace(body), "<") {
		return "a web page"
	}
	return body
}

// failure is c as an error. status 0 stands for a stream that had begun.
func (c complaint) failure(status int) *llm.Error {
	if status == 0 && c.status >= 400 && c.status < 600 {
		status = c.status
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(c.text, "?")), " ")
	if text == "" {
		text = "no reason given"
	}
	kind := kindOf(status, strings.ToLower(c.codes+" "+text))
	return &llm.Error{Kind: kind, Status: status, Err: errors.New(text)}
}

// Words by which providers tell errors apart that share a status.
var (
	wordsTooLong = []string{"context_length", "context length", "context window", "context size", "exceed_context",
		"maximum context", "prompt is too long", "input is too long", "input token count", "reduce the length", "request too large", "too many tokens in"}
	wordsQuota = []string{"insufficient_quota", "insufficient balance", "insufficient credit", "insufficient_balance",
		"billing_hard_limit", "billing_not_active", "credit balance is too low", "requires more credits"}
	wordsAuth       = []string{"invalid_api_key", "incorrect api key", "invalid api key", "api key not valid", "authentication_error"}
	wordsLimited    = []string{"rate_limit", "rate limit", "too many requests", "resource_exhausted"}
	wordsOverloaded = []string{"overloaded", "server_error", "internal_error", "unavailable", "over capacity", "currently loading"}
	wordsBad        = []string{"invalid_request", "badrequest", "bad request", "invalid_argument"}
)

func kindOf(status int, said string) llm.Kind {
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	begun := status == 0 // then there are only words to go by
	switch {
	case status == 401, status == 403, has(wordsAuth) && status < 500:
		return llm.Auth
	case has(wordsTooLong), status == 413:
		return llm.TooLong
	case status == 402, has(wordsQuota):
		return llm.Quota
	case status == 429, begun && has(wordsLimited):
		return llm.RateLimited
	case status == 408, status == 409, status == 425, status >= 500, begun && has(wordsOverloaded):
		return llm.Overloaded
	case status >= 400, begun && has(wordsBad):
		return llm.BadRequest
	}
	return llm.Cut
}

// masked is said without key, and short enough to be shown.
func masked(said, key string) string {
	if len(key) >= 4 {
		said = strings.ReplaceAll(said, key, "[key]")
	}
	if r := []rune(said); len(r) > maxSaid {
		said = string(r[:maxSaid-1]) + "…"
	}
	return said
}
