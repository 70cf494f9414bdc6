package tools

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"parley/llm"
)

// Sign returns r, the outcome of a call of t together with err, with its receipt, unless the Kit refused the call or it
// waits for a person. What stands in the conversation and in the audit log can be checked against each other by it.
// After that a stage of the pipeline must not change r.
func (t Tool) Sign(ctx context.Context, c Call, r Result, err error) Result {
	r = outcome(ctx, r, err)
	if r.Code != CodeWaiting && len(t.Schema) > 0 {
		r.Receipt = receipt(c.ToolCall, t.inWords(r))
	}
	return r
}

// receipt returns 16 hexadecimal digits of a digest of a call and of what the model reads of its result.
func receipt(c llm.ToolCall, r Result) string {
	digest := sha256.New()
	for _, part := range []string{c.ID, c.Name, c.Args, fmt.Sprint(r.Time.UnixNano(), r.Failed), r.Text} {
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	return fmt.Sprintf("%.8x", digest.Sum(nil))
}

// Attests reports whether r, as a conversation kept it, is what its receipt says that
// c gave. The agent may have ended the text with a remark.
func (r Result) Attests(c llm.ToolCall) bool {
	for {
		if r.Receipt == receipt(c, r) {
			return true
		}
		i := strings.LastIndex(r.Text, "\n\n")
		if i < 0 {
			return false
		}
		r.Text = r.Text[:i]
	}
}
