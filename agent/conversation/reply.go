package conversation

import (
	"strings"

	"parley/chat"
)

// IsSilent reports whether an answer says that there is nothing to say.
func IsSilent(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasSuffix(strings.TrimRight(text, ".!*`\"' \n"), NothingToSay)
}

// ReplyToSend returns r, the answer to m, or nil if nobody is to hear it. Whoever
// stopped a scheduled task hears that it was, and a quiet one tells, too, that a
// limit is reached: nobody is to wait in vain for what it watches.
func ReplyToSend(m chat.Message, outcome Outcome, r chat.Reply) *chat.Reply {
	if m.Options != nil && r.Text == "" {
		return nil
	}
	if !IsQuiet(m) || outcome == Stopped || outcome == OverLimit {
		return &r
	}
	if outcome != Answered || IsSilent(r.Text) {
		return nil
	}
	return &r
}

// SameWords reports whether a and b are the same words.
func SameWords(a, b string) bool {
	return strings.EqualFold(strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " "))
}
