package response_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/response"
)

// A browser gets a page with one sentence, a program the same as JSON.
func TestProblem(t *testing.T) {
	busy := response.Problem{Status: http.StatusTooManyRequests, Text: "too much at once", RetryAfter: 1500 * time.Millisecond}
	for name, c := range map[string]struct {
		problem        response.Problem
		method, accept string
		want           string
	}{
		"page":    {busy, "GET", "text/html,*/*", "<h1>Too Many Requests</h1><p>Too much at once.</p>"},
		"program": {busy, "GET", "*/*", `{"error":{"code":null,"message":"too much at once","param":null,"type":"rate_limit_error"}}`},
		"script":  {busy, "POST", "text/html", `{"error":{"code":null,"message":"too much at once","param":null,"type":"rate_limit_error"}}`},
		"code": {
			response.Problem{Status: http.StatusUnauthorized, Text: "No.", Code: "invalid_api_key"}, "GET", "",
			`{"error":{"code":"invalid_api_key","message":"No.","param":null,"type":"invalid_request_error"}}`,
		},
		"sentence": {
			response.Problem{Status: http.StatusNotFound, Text: "Écoutez."}, "GET", "text/html", "<p>Écoutez.</p>",
		},
		"ours": {
			response.Problem{Status: http.StatusInternalServerError, Text: "x"}, "GET", "", `"type":"server_error"`,
		},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/", nil)
		r.Header.Set("Accept", c.accept)
		w := httptest.NewRecorder()
		c.problem.Write(w, r)
		if w.Code != c.problem.Status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want %s", name, w.Code, w.Body, c.want)
		}
		if after := w.Header().Get("Retry-After"); (after == "2") != (c.problem.RetryAfter > 0) {
			t.Errorf("%s: try again after %q", name, after)
		}
	}
}
