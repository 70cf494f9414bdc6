package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/chat"
	"parley/store"
	"parley/texts"
	"parley/workspace"
)

// Notes lets people see and change what is known about them. Its answers are
// Markdown for their chat. A key identifies the message that asks: if that is
// repeated after a crash, nothing more happens.
type Notes struct {
	Versions *Versions
	Past     *History
	Zone     *time.Location
	Texts    *texts.Memory // nil: English
}

// say returns the texts for people.
func (n *Notes) say() texts.Memory {
	if n.Texts == nil {
		return texts.English().Memory
	}
	return *n.Texts
}

const (
	minForget    = 3  // characters that describe what to forget
	maxForgotten = 20 // lines and entries that one request forgets without "all"
	minuteFormat = "2006-01-02 15:04"
)

// A refusal tells a person why nothing was done.
type refusal string

func (r refusal) Error() string { return string(r) }

// answer returns text, or why the request was refused.
func (n *Notes) answer(err error, text string) (string, error) {
	var r refusal
	switch {
	case errors.As(err, &r):
		return string(r), nil
	case errors.Is(err, store.ErrNotFound):
		return n.say().NoChange, nil
	case errors.Is(err, store.ErrDamaged):
		return n.say().ChangeDamaged, nil
	case errors.Is(err, ErrGone):
		return n.say().ChangeGone, nil
	case err != nil:
		return "", err
	}
	return text, nil
}

// Remember adds text to the memory of who.
func (n *Notes) Remember(ctx context.Context, who chat.Person, text, key string) (string, error) {
	return n.remember(ctx, Change{Who: who, Key: key}, text)
}

// remember adds text as the change c.
func (n *Notes) remember(ctx context.Context, c Change, text string) (string, error) {
	c.By = byCommand
	switch text = chat.OneLine(text); {
	case text == "":
		return n.say().RememberUsage, nil
	case utf8.RuneCountInString(text) > maxEdit:
		return n.say().RememberLong.With(maxEdit), nil
	}
	_, err := n.Versions.edit(
		ctx,
		c,
		func(_ context.Context, _ *head, texts map[string]string) error {
			memory, there := texts[memoryFile]
			memory = ended(memory) + "- noted " + time.Now().In(n.Zone).Format(time.DateOnly) + ": " + text + "\n"
			if !there || len(memory) > maxFile {
				return refusal(n.say().Full)
			}
			texts[memoryFile] = memory
			return nil
		},
	)
	return n.answer(err, n.say().Noted)
}

// Forget removes the lines from the memory of who, and the entries from their
// history, that contain what. If there are many, it asks for more words, unless
// what begins with "all ".
func (n *Notes) Forget(ctx context.Context, who chat.Person, what, key string) (string, error) {
	what, all := strings.CutPrefix(strings.TrimSpace(what), "all ")
	what = strings.ToLower(strings.TrimSpace(what))
	if utf8.RuneCountInString(what) < minForget {
		return n.say().ForgetUsage.With(minForget), nil
	}
	holds := func(text string) bool { return strings.Contains(strings.ToLower(text), what) }
	parts := 0
	c, err := n.Versions.edit(
		ctx,
		Change{Who: who, By: "/forget", Key: key},
		func(ctx context.Context, _ *head, texts map[string]string) error {
			found := 0
			for e, err := range n.Past.Since(ctx, who, 0) {
				if err != nil {
					return err
				}
				if holds(e.Text) {
					found++
				}
			}
			for name, text := range texts {
				if rest, lost := without(text, holds); name != soulFile && len(lost) > 0 {
					texts[name] = rest
					found += len(lost)
				}
			}
			if found > maxForgotten && !all {
				return refusal(n.say().ForgetMany.With(found, what))
			}
			// Entries first, so that a dream under way cannot use them after the lines are gone.
			var err error
			parts, err = n.Past.Forget(ctx, who, func(e Entry) bool { return !holds(e.Text) })
			return err
		},
	)
	if err != nil {
		return n.answer(err, "")
	}
	var lost []string
	for _, name := range names(who) {
		before, err := n.Versions.text(ctx, who, c.Files[name].Before)
		if err != nil {
			return n.answer(err, "")
		}
		_, gone := without(before, holds)
		lost = append(lost, gone...)
	}
	if parts+len(lost) == 0 {
		return n.say().ForgetNothing, nil
	}
	say := n.say()
	text := say.Forgotten.With(say.Parts.Of(parts), say.Lines.Of(len(lost)))
	if len(lost) > 0 {
		listed := lost[:min(len(lost), maxForgotten)]
		text += "\n\n> " + strings.Join(listed, "\n> ") + "\n\n" + say.ForgetUndo.With(c.ID)
	}
	return text, nil
}

// without returns text without the lines for which which is true, and these lines.
func without(text string, which func(string) bool) (rest string, gone []string) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if which(line) {
			gone = append(gone, chat.Shorten(strings.TrimSpace(line), 200))
		} else {
			b.WriteString(line)
		}
	}
	return b.String(), gone
}

// Show returns what is known about who.
func (n *Notes) Show(ctx context.Context, who chat.Person) (text string, err error) {
	all := 0
	fresh := 0
	err = n.Versions.with(ctx, who, func(ctx context.Context, h *head, texts map[string]string) error {
		for _, name := range []string{memoryFile, userFile, heardFile} {
			says := strings.TrimSpace(texts[name])
			if says != "" && says != strings.TrimSpace(workspace.First(name)) { // the form that nobody has filled in
				text += "**" + name + "**\n\n" + chat.Shorten(says, 1500) + "\n\n"
			}
		}
		for e, err := range n.Past.Since(ctx, who, 0) {
			if err != nil {
				return err
			}
			if all++; e.Cursor > h.Cursor {
				fresh++
			}
		}
		return nil
	})
	unread := ""
	if fresh > 0 {
		unread = n.say().Unread.With(fresh)
	}
	switch {
	case all > 0:
		text += n.say().Remembered.With(n.say().Parts.Of(all), unread)
	case text == "":
		text = n.say().RemembersNothing
	}
	return strings.TrimSpace(text), err
}

// Changes lists the last changes of the memory of who, or shows the one with this
// ID.
func (n *Notes) Changes(ctx context.Context, who chat.Person, id string) (string, error) {
	if id == "" {
		all, err := n.Versions.Log(ctx, who, 10)
		if len(all) == 0 {
			return n.answer(err, n.say().Unchanged)
		}
		return n.answer(err, n.say().Changes+"\n"+n.list(all)+"\n\n"+n.say().HowToUndo)
	}
	diff, c, err := n.Versions.Show(ctx, who, id)
	fence := "```"
	for strings.Contains(diff, fence) {
		fence += "`"
	}
	return n.answer(err, n.list([]Change{c})+"\n\n"+fence+"diff\n"+ended(chat.Shorten(diff, 3000))+fence)
}

// Restore undoes the change id.
func (n *Notes) Restore(ctx context.Context, who chat.Person, id, key string) (string, error) {
	c, err := n.Versions.Restore(ctx, who, id, key)
	return n.answer(err, n.say().Restored.With(id, c.ID))
}

// Accept makes the edits that the change id proposes.
func (n *Notes) Accept(ctx context.Context, who chat.Person, id, key string) (string, error) {
	c, err := n.Versions.Accept(ctx, who, id, key)
	if errors.Is(err, ErrGone) {
		return n.say().NothingToAccept.With(id), nil
	}
	return n.answer(err, n.say().Accepted.With(id, c.ID))
}

// list describes each change on a line.
func (n *Notes) list(changes []Change) (text string) {
	for _, c := range changes {
		says := n.say().DamagedOnDisk
		if c.By != "" {
			parts := []string{c.Time.In(n.Zone).Format(minuteFormat), c.By}
			says = strings.Join(append(parts, slices.Sorted(maps.Keys(c.Files))...), ", ")
		}
		if c.Why != "" {
			says += ": " + c.Why
		}
		if len(c.Asks) > 0 {
			says += n.say().Proposed.With(strings.Join(slices.Sorted(maps.Keys(c.Asks)), ", "), c.ID)
		}
		text += fmt.Sprintf("\n- `%s` %s", c.ID, says)
	}
	return text
}
