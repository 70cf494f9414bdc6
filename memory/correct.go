package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
	"parley/store"
)

// A Correction is what an owner wants a memory file to say.
type Correction struct {
	File string `json:"file"`
	// Base is the Digest of what the file said when the owner saw it, for a new text of the whole file.
	Base string `json:"base,omitempty"`
	// Line is the number of the line to correct, and Was what the owner saw there; 0 is the whole file.
	Line int    `json:"line,omitempty"`
	Was  string `json:"was,omitempty"`
	Text string `json:"text"` // the new text; "" removes a line
}

// Digest returns the digest of what the file of that name says: a Correction's Base.
func (n *Notes) Digest(ctx context.Context, who chat.Person, file string) (text, sum string, err error) {
	err = n.Versions.with(ctx, who, func(_ *head, texts map[string]string) error {
		was, there := texts[file]
		if !there {
			return fmt.Errorf("%s: %w", file, store.ErrNotFound)
		}
		text = was
		sum = digest(was)
		return nil
	})
	return text, sum, err
}

// Correct changes a memory file of who as an owner says. The error is store.ErrConflict if the owner saw another
// text than there is now, store.ErrNotFound if there is no such file, and a [chat.Refusal] if the text would be
// too long. If nothing has changed, the Change has no ID.
func (n *Notes) Correct(ctx context.Context, who chat.Person, to Correction) (Change, error) {
	return n.Versions.edit(ctx, Change{Who: who, By: byPage}, func(_ *head, texts map[string]string) error {
		text, there := texts[to.File]
		if !there {
			return fmt.Errorf("%s: %w", to.File, store.ErrNotFound)
		}
		next := strings.Join(rows(to.Text), "\n")
		switch {
		case to.Line > 0:
			lines := slices.Collect(strings.Lines(text))
			if to.Line > len(lines) || shown(lines[to.Line-1]) != to.Was {
				return fmt.Errorf("line %d of %s: %w", to.Line, to.File, store.ErrConflict)
			}
			lines[to.Line-1] = ended(strings.TrimSpace(strings.ReplaceAll(next, "\n", " ")))
			if indent := len(to.Was) - len(strings.TrimLeft(to.Was, " \t")); lines[to.Line-1] != "" {
				lines[to.Line-1] = to.Was[:indent] + lines[to.Line-1]
			}
			next = strings.Join(lines, "")
		case to.Base != digest(text):
			return fmt.Errorf("%s: %w", to.File, store.ErrConflict)
		default:
			next = ended(next)
		}
		if len(next) > max(maxFile, len(text)) {
			const text = "%s would have %d bytes, and may have %d"
			return &chat.Refusal{Text: fmt.Sprintf(text, to.File, len(next), maxFile)}
		}
		texts[to.File] = next
		return nil
	})
}

// Observe makes changes of what was done to the memory files of who since the last look: as edits by hand, or, with
// a session, as what was done in that conversation, maybe with untrusted content before the agent's eyes.
func (v *Versions) Observe(ctx context.Context, who chat.Person, session chat.SessionID, tainted bool) error {
	unlock, err := v.store.Lock(ctx, "memory "+string(who))
	if err != nil {
		return err
	}
	defer unlock()
	_, _, err = v.current(ctx, Change{Who: who, By: byHand, Session: session, Tainted: tainted})
	return err
}

// maxExplained is how many lines Explain tells.
const maxExplained = 5

// Explain returns the lines of the memory of who that have the words, and where each comes from, as Markdown for
// their chat.
func (n *Notes) Explain(ctx context.Context, who chat.Person, words string) (string, error) {
	say := n.say().Why
	if strings.TrimSpace(words) == "" {
		return say.Usage, nil
	}
	all, err := n.Lines(ctx, who)
	if err != nil {
		return "", err
	}
	found := all.Matching(words, maxExplained)
	if len(found) == 0 {
		return say.Nothing, nil
	}
	var told []string
	for _, line := range found {
		told = append(told, "> "+strings.TrimSpace(line.Text)+"\n\n"+n.Provenance(line, all))
	}
	return strings.Join(told, "\n\n"), nil
}

// Provenance says in words where a line of all comes from.
func (n *Notes) Provenance(line Line, all Lines) string {
	say := n.say().Why
	o := line.Origin
	if o == nil {
		if all.Since.IsZero() {
			return say.Unknown
		}
		return say.UnknownBefore.With(all.Since.In(n.Zone).Format(minuteFormat))
	}
	at := o.Time.In(n.Zone).Format(minuteFormat)
	text := ""
	switch {
	case o.By == byDream && len(o.Sources) > 0:
		var from []string
		for _, s := range o.Sources[:min(len(o.Sources), 3)] {
			from = append(from, say.Conversation.With(s.Session, s.Time.In(n.Zone).Format(minuteFormat)))
		}
		list := strings.Join(from, "; ")
		text = say.Dream.With(list, at)
		if !o.Named && o.Read > 1 {
			text = say.DreamOneOf.With(o.Read, list, at)
		}
	case o.Session != "":
		text = say.Said.With(o.By, o.Session, at)
	default:
		text = say.ByHand.With(o.By, at)
	}
	if line.Untrusted {
		text += " " + say.Untrusted
	}
	return text
}
