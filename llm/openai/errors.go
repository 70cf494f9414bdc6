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
	maxErrorBody = 64 << 10 // bytes that are read of an error's body
	maxErrorText = 300      // runes that are kept of it
	minKeyLen    = 4        // bytes: a shorter key is not masked, because it may be a common word
)

// parseError understands {"error":{"message":…}}, {"error":"…"}, {"message":…},
// {"detail":…}, those in a list, web pages and plain text. status is 0 within a
// stream. certain means that body cannot be part of an answer.
func parseError(body []byte, status int) (e *llm.Error, certain bool) {
	fields, text, certain := errorFields(body)
	for _, key := range []string{"message", "detail", "msg"} {
		text = cmp.Or(text, asText(fields[key]))
	}
	if meta, ok := fields["metadata"].(map[string]any); ok { // a router quotes the provider
		text += " " + asText(meta["raw"])
	}
	if text == "" && strings.HasPrefix(strings.TrimSpace(string(body)), "<") {
		text = "a web page"
	}
	text = cmp.Or(text, string(body))
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if status == 0 {
		status = statusIn(fields)
	}
	clues := strings.ToLower(fmt.Sprint(fields["code"], " ", fields["type"], " ", fields["status"], " ", text))
	kind := kindOf(status, clues)
	return &llm.Error{Kind: kind, Status: status, Err: errors.New(cmp.Or(text, "no reason given"))}, certain
}

// statusIn returns the HTTP status that the fields of an error have as their code, 0
// if they have none.
func statusIn(fields map[string]any) int {
	code, err := strconv.Atoi(fmt.Sprint(fields["code"]))
	if err != nil || code < 400 || code >= 600 {
		return 0
	}
	return code
}

// errorFields returns the fields of the error in body, or its text if the error is
// a string.
func errorFields(body []byte) (fields map[string]any, text string, certain bool) {
	var v any
	_ = json.Unmarshal(body, &v) // otherwise it is plain text
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	fields, _ = v.(map[string]any)
	certain = fields["object"] == "error"
	switch e := fields["error"].(type) {
	case map[string]any:
		return e, "", certain || len(e) > 0
	case string:
		return fields, e, certain || e != ""
	}
	return fields, "", certain
}

// asText returns v as text, "" for nil.
func asText(v any) string {
	if s, ok := v.(string); ok || v == nil {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// Phrases in which errors that share a status differ.
var (
	tooLongPhrases = []string{
		"context_length", "context length", "context window", "context size", "exceed_context",
		"maximum context", "prompt is too long", "input is too long", "input token count",
		"reduce the length", "request too large", "too many tokens in",
	}
	quotaPhrases = []string{
		"insufficient_quota", "insufficient balance", "insufficient credit", "insufficient_balance",
		"billing_hard_limit", "billing_not_active", "credit balance is too low", "requires more credits",
	}
	authPhrases = []string{
		"invalid_api_key", "incorrect api key", "invalid api key", "api key not valid", "authentication_error",
	}
	rateLimitPhrases  = []string{"rate_limit", "rate limit", "too many requests", "resource_exhausted"}
	overloadedPhrases = []string{
		"overloaded", "server_error", "internal_error", "unavailable", "over capacity", "currently loading",
	}
	badRequestPhrases = []string{"invalid_request", "badrequest", "bad request", "invalid_argument"}
)

// kindOf classifies an error by its status and by phrases in its clues. Within a
// stream, where the status is 0, there are only the phrases.
func kindOf(status int, clues string) llm.Kind {
	has := func(phrases []string) bool {
		return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(clues, p) })
	}
	inStream := status == 0
	switch {
	case status == 401, status == 403, has(authPhrases) && status < 500:
		return llm.Auth
	case has(tooLongPhrases), status == 413:
		return llm.TooLong
	case status == 402, has(quotaPhrases):
		return llm.Quota
	case status == 429, inStream && has(rateLimitPhrases):
		return llm.RateLimited
	case status == 408, status == 409, status == 425, status >= 500, inStream && has(overloadedPhrases):
		return llm.Overloaded
	case status >= 400, inStream && has(badRequestPhrases):
		return llm.BadRequest
	}
	return llm.Cut
}

// maskKey returns text without the key, and short enough to be shown.
func maskKey(text, key string) string {
	if len(key) >= minKeyLen {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	if runes := []rune(text); len(runes) > maxErrorText {
		text = string(runes[:maxErrorText-1]) + "…"
	}
	return text
}
