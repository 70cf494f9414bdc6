package conversation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/lazyregexp"
)

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Join returns the texts that are not empty, a blank line between them.
func Join(texts ...string) string {
	kept := texts[:0:0]
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "\n\n")
}

// maxReason bounds the reason of a failure, in characters (D-040).
const maxReason = 120

// Reason returns the first line of the text of a failure, for people.
func Reason(text string) string {
	line, _, _ := strings.Cut(Failure(text), "\n")
	return chat.Clip(line, maxReason, "")
}

// Failure returns the text of a failed call without what is for models only.
func Failure(text string) string {
	text, _, _ = strings.Cut(strings.TrimPrefix(errorIn(text), "Error: "), "\n\n[Analyze the error above")
	return chat.HideLogins(text)
}

// errorIn returns the error in an envelope of JSON, or text if it is no envelope.
func errorIn(text string) string {
	var envelope struct{ Error string }
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &envelope) != nil {
		return text
	}
	return envelope.Error
}

// breaks indents every line but the first, whatever ends a line, so that only the
// gateway begins one (R-S11).
var breaks = strings.NewReplacer("\n", "\n  ", "\r", "\n  ", "\v", "\n  ", "\f", "\n  ",
	"\u0085", "\n  ", "\u2028", "\n  ", "\u2029", "\n  ")

// MaxTip bounds a Tip, in bytes.
const MaxTip = 80

// Tip returns the first words among the arguments of a call, such as the path of a file.
func Tip(args string) string { return chat.Inline(chat.HideLogins(FirstText(args)), MaxTip) }

// FirstText returns the first text among the arguments of a call.
func FirstText(args string) (words string) {
	if m := firstWords.FindStringSubmatch(args[:min(len(args), 1000)]); m != nil {
		_ = json.Unmarshal([]byte(m[1]+`"`), &words) // none if a cut letter is at the end
	}
	return words
}

var firstWords = lazyregexp.New(`:\s*("(?:[^"\\]|\\.)*)`)

// PlainResult returns the result of a tool as people read it: of an envelope of
// JSON, what is in it.
func PlainResult(text string) string {
	var envelope struct {
		Success *bool
		Data    any
	}
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &envelope) != nil || envelope.Success == nil {
		return text
	}
	fields, ok := envelope.Data.(map[string]any)
	if !ok {
		return plainValue(envelope.Data)
	}
	if message, ok := fields["message"].(string); ok && fields["return_code"] != nil { // of a program (B-059)
		return message
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "- %s: %s\n", name, plainValue(fields[name]))
	}
	return strings.TrimSpace(b.String())
}

// plainValue returns v as people read it.
func plainValue(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v) // it was JSON
	return string(b)
}
