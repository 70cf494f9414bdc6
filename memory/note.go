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
)

// Notes is what people can do themselves to what is known of them. What it
// returns is Markdown for their chat. A key names the message that asks: when
// that comes again after a crash, nothing more is done.
type Notes struct {
	Versions *Versions
	Past     *History
	Zone     *time.Location
}

const (
	fewest    = 3  // characters that name what is to be forgotten
	mostLost  = 20 // lines and entries that are forgotten at a word
	minutes   = "2006-01-02 15:04"
	howToUndo = "\n\n`/dream log ID` shows a change, `/dream restore ID` undoes it."
)

// A refusal tells a person why nothing was done.
type refusal string

func (r refusal) Error() string { return string(r) }

// answer tells what came of a request: text, or why it was refused.
func answer(err error, text string) (string, error) {
	var r refusal
	switch {
	case errors.As(err, &r):
		return string(r), nil
	case errors.Is(err, store.ErrNotFound):
		return "There is no such change; `/dream log` lists them.", nil
	case errors.Is(err, store.ErrDamaged):
		return "That change is damaged on disk.", nil
	case errors.Is(err, ErrGone):
		return "What that change wrote is not there any more, so it cannot be undone.", nil
	case err != nil:
		return "", err
	}
	return text, nil
}

// Remember writes text down in the memory of who.
func (n *Notes) Remember(ctx context.Context, who chat.Person, text, key string) (string, error) {
	switch text = strings.Join(strings.Fields(text), " "); {
	case text == "":
		return "What am I to remember? `/remember TEXT`", nil
	case utf8.RuneCountInString(text) > maxEdit:
		return fmt.Sprintf("That is too long to remember: %d characters are the most.", maxEdit), nil
	}
	_, err := n.Versions.edit(ctx, Change{Who: who, By: "/remember", Key: key}, func(_ *head, texts map[string]string) error {
		memory, there := texts[memoryFile]
		memory = ended(memory) + "- noted " + time.Now().In(n.Zone).Format(time.DateOnly) + ": " + text + "\n"
		if !there || len(memory) > maxFile {
			return refusal("My memory of you is full or cannot be read, so I noted nothing. `/forget WHAT` makes room.")
		}
		texts[memoryFile] = memory
		return nil
	})
	return answer(err, "Noted.")
}

// Forget removes the lines of the memory of who, and the entries of their
// history, that hold what. When those are many, it asks for more words; "all"
// before what says that all are meant.
func (n *Notes) Forget(ctx context.Context, who chat.Person, what, key string) (string, error) {
	what, all := strings.CutPrefix(strings.TrimSpace(what), "all ")
	what = strings.ToLower(strings.TrimSpace(what))
	if utf8.RuneCountInString(what) < fewest {
		return fmt.Sprintf("What am I to forget? `/forget WHAT`, in at least %d characters.", fewest), nil
	}
	holds := func(text string) bool { return strings.Contains(strings.ToLower(text), what) }
	parts := 0
	c, err := n.Versions.edit(ctx, Change{Who: who, By: "/forget", Key: key}, func(_ *head, texts map[string]string) error {
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
				texts[name], found = rest, found+len(lost)
			}
		}
		if found > mostLost && !all {
			return refusal(fmt.Sprintf("%d lines and parts of conversations hold that. Say it in more words, or `/forget all %s` if you mean them all.", found, what))
		}
		var err error // entries first: no dream under way is to write of them once the lines are gone
		parts, err = n.Past.Forget(ctx, who, func(e Entry) bool { return !holds(e.Text) })
		return err
	})
	var lost []string
	for _, name := range names(who) {
		var before string
		if err == nil {
			before, err = n.Versions.text(ctx, who, c.Files[name].Before)
		}
		_, gone := without(before, holds)
		lost = append(lost, gone...)
	}
	if err != nil {
		return answer(err, "")
	}
	if parts+len(lost) == 0 {
		return "Nothing that I remember holds that, so there is nothing to forget.", nil
	}
	text := fmt.Sprintf("Forgotten: %s of past conversations, %s.", count(parts, "part"), count(len(lost), "line"))
	if len(lost) > 0 {
		text += "\n\n> " + strings.Join(lost[:min(len(lost), mostLost)], "\n> ") + fmt.Sprintf("\n\n`/dream restore %s` brings the lines back.", c.ID)
	}
	return text, nil
}

// without returns the lines of text that are not to go, and those that are.
func without(text string, which func(string) bool) (rest string, gone []string) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if which(line) {
			gone = append(gone, clip(strings.TrimSpace(line), 200))
		} else {
			b.WriteString(line)
		}
	}
	return b.String(), gone
}

// Show tells what is known of who.
func (n *Notes) Show(ctx context.Context, who chat.Person) (text string, err error) {
	all, fresh := 0, 0
	err = n.Versions.with(ctx, who, func(h *head, texts map[string]string) error {
		for _, name := range []string{memoryFile, userFile, heardFile} {
			if says := strings.TrimSpace(texts[name]); says != "" {
				text += "**" + name + "**\n\n" + clip(says, 1500) + "\n\n"
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
		text += fmt.Sprintf("I remember %s of past conversations (%d not thought over yet).", count(all, "part"), fresh)
		return nil
	})
	return text, err
}

// Changes tells of the last changes of the memory of who, or what the one
// called id did.
func (n *Notes) Changes(ctx context.Context, who chat.Person, id string) (string, error) {
	if id == "" {
		all, err := n.Versions.Log(ctx, who, 10)
		if len(all) == 0 {
			return answer(err, "My memory of you has not changed yet.")
		}
		return answer(err, "The last changes of my memory of you:\n"+n.list(all)+howToUndo)
	}
	diff, c, err := n.Versions.Show(ctx, who, id)
	fence := "```"
	for strings.Contains(diff, fence) {
		fence += "`"
	}
	return answer(err, n.list([]Change{c})+"\n\n"+fence+"diff\n"+ended(clip(diff, 3000))+fence)
}

// Restore undoes the change id.
func (n *Notes) Restore(ctx context.Context, who chat.Person, id, key string) (string, error) {
	c, err := n.Versions.Restore(ctx, who, id, key)
	return answer(err, fmt.Sprintf("Change %s is undone; `/dream restore %s` takes that back.", id, c.ID))
}

// Accept makes the changes that the change id asks for.
func (n *Notes) Accept(ctx context.Context, who chat.Person, id, key string) (string, error) {
	c, err := n.Versions.Accept(ctx, who, id, key)
	if errors.Is(err, ErrGone) {
		return "There is nothing left to accept in change " + id + ": it proposes nothing, or later changes are in the way.", nil
	}
	return answer(err, fmt.Sprintf("What change %s proposed is made; `/dream restore %s` takes that back.", id, c.ID))
}

// list tells of each change in a line.
func (n *Notes) list(changes []Change) (text string) {
	for _, c := range changes {
		says := "damaged on disk"
		if c.By != "" {
			says = strings.Join(append([]string{c.Time.In(n.Zone).Format(minutes), c.By}, slices.Sorted(maps.Keys(c.Files))...), ", ")
		}
		if c.Why != "" {
			says += ": " + c.Why
		}
		if len(c.Asks) > 0 {
			says += fmt.Sprintf(" (proposed: %s; `/dream accept %s` makes it so)", strings.Join(slices.Sorted(maps.Keys(c.Asks)), ", "), c.ID)
		}
		text += fmt.Sprintf("\n- `%s` %s", c.ID, says)
	}
	return text
}
