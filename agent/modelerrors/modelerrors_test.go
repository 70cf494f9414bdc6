package modelerrors_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/agent/modelerrors"
	"parley/llm"
	"parley/texts"
)

// A-091, P11, R-S26: the person reads the kind of failure and no more.
func TestKindly(t *testing.T) {
	kinds := []llm.Kind{llm.Auth, llm.Quota, llm.BadRequest, llm.TooLong, llm.RateLimited, llm.Overloaded, llm.Cut, llm.TimedOut, llm.Unreachable, "else"}
	seen, say := map[string]bool{}, texts.English().Agent.Model
	for _, k := range kinds {
		s := modelerrors.Kindly(say, fmt.Errorf("turn: %w", &llm.Error{Kind: k, Status: 418, Err: errors.New("sk-secret")}))
		if s == "" || strings.Contains(s, "sk-secret") || strings.Contains(s, "418") || strings.ContainsAny(s, "\n") || seen[s] {
			t.Errorf("%s: %q", k, s)
		}
		seen[s] = true
	}
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, "in a minute"}, {30 * time.Second, "in a minute"}, {61 * time.Second, "in 2 minutes"}, {3 * time.Hour, "in an hour or more"}} {
		if s := modelerrors.Kindly(say, &llm.Error{Kind: llm.RateLimited, After: c.after}); !strings.Contains(s, c.want) {
			t.Errorf("%v: %q", c.after, s)
		}
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, errors.New("sk-secret")} {
		if s := modelerrors.Kindly(say, err); s == "" || strings.Contains(s, "secret") {
			t.Errorf("%v: %q", err, s)
		}
	}
}
