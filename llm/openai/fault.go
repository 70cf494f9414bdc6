package openai

import (
	"cmp"
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

// complaintIn understands {"error":{"message":…}}, {"error":"…"},
// {"message":…}, {"detail":…}, those in a list, web pages and plain text.
// status 0 stands for a stream that had begun; serious says that this is
// surely an error, and no part of an answer.
func complaintIn(body []byte, status int) (e *llm.Error, serious bool) {
	var v any
	_ = json.Unmarshal(body, &v) // then it is text
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	m, _ := v.(map[string]any)
	serious = m["object"] == "error"
	text := ""
	switch e := m["error"].(type) {
	case map[string]any:
		serious = serious || len(e) > 0
		m = e
	case string:
		serious = serious || e != ""
		text = e
	}
	for _, key := range []string{"message", "detail", "msg"} {
		text = cmp.Or(text, words(m[key]))
	}
	if meta, ok := m["metadata"].(map[string]any); ok { // a router quotes the provider
		text += " " + words(meta["raw"])
	}
	if text == "" && strings.HasPrefix(strings.TrimSpace(string(body)), "<") {
		text = "a web page"
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(cmp.Or(text, string(body)), "?")), " ")
	if code, err := strconv.Atoi(fmt.Sprint(m["code"])); err == nil && status == 0 && code >= 400 && code < 600 {
		status = code
	}
	kind := kindOf(status, strings.ToLower(fmt.Sprint(m["code"], " ", m["type"], " ", m["status"], " ", text)))
	return &llm.Error{Kind: kind, Status: status, Err: errors.New(cmp.Or(text, "no reason given"))}, serious
}

// words is v as text, "" for nil.
func words(v any) string {
	if s, ok := v.(string); ok || v == nil {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// Words by which providers tell errors apart that share a status.
var (
	wordsTooLong = []string{"context_length", "context length", "context window", "context size", "exceed_context",
		"maximum context", "prompt is too long", "input is too long", "input token count", "reduce the " +
			"length", "request too large", "too many tokens in"}
	wordsQuota = []string{"insufficient_quota", "insufficient balance", "insufficient credit", "insufficient_balance",
		"billing_hard_limit", "billing_not_active", "credit balance is too low", "requires more credits"}
	wordsAuth = []string{
		"invalid_api_key",
		"incorrect api key",
		"invalid api key",
		"api key not valid",
		"authentication_error",
	}
	wordsLimited    = []string{"rate_limit", "rate limit", "too many requests", "resource_exhausted"}
	wordsOverloaded = []string{
		"overloaded",
		"server_error",
		"internal_error",
		"unavailable",
		"over capacity",
		"currently loading",
	}
	wordsBad = []string{"invalid_request", "badrequest", "bad request", "invalid_argument"}
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
