package tools

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

const preview = 1200 // characters of a long result that the model sees at once

// Truncate keeps a result within its tool's MaxText. A longer one goes to a
// file that the text names (D-042), or is cut when there is nowhere to keep it
// (D-043). It also makes sure that there is something to read (D-044), and
// that it is text.
func Truncate() Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		r, err := t.Run(ctx, c)
		r.Text = strings.ToValidUTF8(r.Text, "\ufffd")
		limit := t.MaxText
		if limit == 0 {
			limit = DefaultMaxText
		}
		switch n := utf8.RuneCountInString(r.Text); {
		case err != nil || n > 0 && (n <= limit || limit < 0):
		case n == 0 && r.Failed:
			r.Text = fmt.Sprintf("%s failed and did not say why", t.Name)
		case n == 0:
			r.Text = fmt.Sprintf("(%s completed with no output)", t.Name)
		default:
			r.Text = shorten(c, r.Text, n, limit)
		}
		return r, err
	})
}

// shorten returns what the model sees of a text of n characters.
func shorten(c Call, text string, n, limit int) string {
	path, err := keep(c, text)
	if err != nil {
		return cut(text, limit) + "\n... (truncated)"
	}
	return fmt.Sprintf("[tool output persisted]\nFull output saved to: %s\nOriginal size: %d chars\nPreview:\n%s\n...\n"+
		"(Read the saved file if you need the full output.)", path, n, cut(text, min(preview, limit)))
}

// cut returns the first n characters of text.
func cut(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
