package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	err = n.Versions.with(ctx, who, func(_ context.Context, _ *head, texts map[string]string) error {
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
	c := Change{Who: who, By: byPage}
	return n.Versions.edit(ctx, c, func(_ context.Context, _ *head, texts map[string]string) error {
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
	return v.locked(ctx, who, func(ctx context.Context) error {
		_, _, err := v.current(ctx, Change{Who: who, By: byHand, Session: session, Tainted: tainted})
		return err
	})
}

// maxExplained is how many lines Explain tells.
const maxExplained = 5

// Explain returns the lines of the memory of who that have the words, and where each comes from, as Markdown for
// their chat, the session here.
func (n *Notes) Explain(ctx context.Context, who chat.Person, words string, here chat.SessionID) (string, error) {
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
		told = append(told, "> "+strings.TrimSpace(line.Text)+"\n\n"+n.Provenance(line, all, here))
	}
	return strings.Join(told, "\n\n"), nil
}

// maxSourcesNamed is how many bytes Provenance takes to name where untrusted content comes from.
const maxSourcesNamed = 300

// Provenance says in words where a line of all comes from, to people in the session here.
func (n *Notes) Provenance(line Line, all Lines, here chat.SessionID) string {
	say := n.say().Why
	text := n.cameFrom(line, all, here)
	if !line.Untrusted {
		return text
	}
	var from []string
	if line.Origin != nil {
		for _, s := range line.Origin.Sources {
			from = chat.JoinSources(from, s.From...)
		}
	}
	if len(from) == 0 {
		return text + " " + say.Untrusted
	}
	named := chat.Inline(strings.Join(from, ", "), maxSourcesNamed)
	return text + " " + say.UntrustedFrom.With("`"+strings.ReplaceAll(named, "`", "'")+"`")
}

// cameFrom says who wrote a line of all, where and when.
func (n *Notes) cameFrom(line Line, all Lines, here chat.SessionID) string {
	say := n.say().Why
	at := func(t time.Time) string { return t.In(n.Zone).Format(minuteFormat) }
	o := line.Origin
	switch {
	case o == nil && all.Since.IsZero():
		return say.Unknown
	case o == nil:
		return say.UnknownBefore.With(at(all.Since))
	}
	session := func(id chat.SessionID) string {
		if id == here {
			return say.Here
		}
		return string(id)
	}
	switch {
	case o.By == byDream && len(o.Sources) > 0:
		var from []string
		for _, s := range o.Sources[:min(len(o.Sources), 3)] {
			from = append(from, say.Conversation.With(session(s.Session), at(s.Time)))
		}
		list := strings.Join(from, "; ")
		if !o.Named && o.Read > 1 {
			return say.DreamOneOf.With(o.Read, list, at(o.Time))
		}
		return say.Dream.With(list, at(o.Time))
	case o.By == byCommand && o.Session != "":
		return say.Told.With(session(o.Session), at(o.Time))
	case o.By == byHand && o.Session != "":
		return say.Said.With(session(o.Session), at(o.Time))
	case o.By == byHand:
		return say.ByHand.With(at(o.Time))
	case o.By == byPage:
		return say.OnPage.With(at(o.Time))
	}
	return say.Changed.With(o.By, at(o.Time))
}
