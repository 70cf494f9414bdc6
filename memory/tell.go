package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/chat"
	"parley/store"
)

// Show tells what is known of who.
func (n *Notes) Show(ctx context.Context, who chat.Person) (string, error) {
	entries, fresh := 0, 0
	var b strings.Builder
	err := n.Versions.with(ctx, who, func(h *head, texts map[string]string) error {
		for _, name := range []string{memoryFile, userFile} {
			if text := strings.TrimSpace(texts[name]); text != "" {
				fmt.Fprintf(&b, "**%s**\n\n%s\n\n", name, clip(text, 1500))
			}
		}
		for e, err := range n.Past.Since(ctx, who, 0) {
			if err != nil {
				return err
			}
			if entries++; e.Cursor > h.Cursor {
				fresh++
			}
		}
		if b.Len() == 0 {
			b.WriteString("I have noted nothing yet. ")
		}
		fmt.Fprintf(&b, "I remember %s of past conversations; %d of them I have not thought over.", count(entries, "part", "parts"), fresh)
		if !h.Dreamt.IsZero() {
			fmt.Fprintf(&b, " The last dream was on %s.", h.Dreamt.In(n.Zone).Format(minutes))
		}
		return nil
	})
	return b.String(), err
}

const minutes = "2006-01-02 15:04"

// Changes tells of the last changes of the memory of who, or what the one
// called id did.
func (n *Notes) Changes(ctx context.Context, who chat.Person, id string) (string, error) {
	if id != "" {
		diff, c, err := n.Versions.Show(ctx, who, id)
		return told(id, err, n.line(c)+"\n\n"+fenced(clip(diff, 3000)))
	}
	all, err := n.Versions.Log(ctx, who, shown)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "Nothing has changed in my memory of you yet.", nil
	}
	var b strings.Builder
	for _, c := range all {
		b.WriteString("- " + n.line(c) + "\n")
	}
	return b.String() + "\n`/dream log ID` shows a change, `/dream restore ID` undoes it.", nil
}

// Restore undoes the change id.
func (n *Notes) Restore(ctx context.Context, who chat.Person, id, key string) (string, error) {
	c, err := n.Versions.Restore(ctx, who, id, key)
	return told(id, err, fmt.Sprintf("Change %s is undone; `/dream restore %s` takes that back.", id, c.ID))
}

// Dreamt tells what a dream did.
func Dreamt(changes []Change, read int) string {
	switch {
	case read == 0:
		return "Nothing new was said since the last dream."
	case len(changes) == 0:
		return fmt.Sprintf("I thought over %s of past conversations; nothing had to be changed.", count(read, "part", "parts"))
	}
	text := fmt.Sprintf("I thought over %s of past conversations.\n", count(read, "part", "parts"))
	for _, c := range changes {
		text += fmt.Sprintf("\n- `%s` %s", c.ID, what(c))
	}
	return text + "\n\n`/dream log ID` shows a change, `/dream restore ID` undoes it."
}

// told tells what came of asking for the change id.
func told(id string, err error, text string) (string, error) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Sprintf("There is no change %q, or what it changed is not kept any more. `/dream log` lists them.", id), nil
	case errors.Is(err, store.ErrDamaged):
		return fmt.Sprintf("Change %s is damaged on disk.", id), nil
	case errors.Is(err, ErrGone):
		return fmt.Sprintf("Change %s cannot be undone: what it wrote is not there any more.", id), nil
	case err != nil:
		return "", err
	}
	return text, nil
}

// line tells of a change in a line.
func (n *Notes) line(c Change) string {
	if c.By == "" {
		return fmt.Sprintf("`%s` is damaged on disk", c.ID)
	}
	return fmt.Sprintf("`%s` %s, %s: %s", c.ID, c.Time.In(n.Zone).Format(minutes), c.By, what(c))
}

// what tells what a change changed, and why.
func what(c Change) string {
	var parts []string
	for _, name := range names(c.Who) {
		if _, ok := c.Files[name]; ok {
			parts = append(parts, name)
		}
	}
	text := strings.Join(parts, ", ")
	switch {
	case c.Why == "":
		return text
	case text == "":
		return c.Why
	}
	return c.Why + " (" + text + ")"
}

// fenced puts a diff where nothing in it can end it.
func fenced(diff string) string {
	fence := "```"
	for strings.Contains(diff, fence) {
		fence += "`"
	}
	return fence + "diff\n" + ended(diff) + fence
}
