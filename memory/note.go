package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/chat"
)

// Notes is what people can do themselves to what is known of them. What it
// returns is Markdown for their chat. A key names the message that asks: when
// that comes again after a crash, nothing more is done.
type Notes struct {
	Versions *Versions
	Past     interface {
		Past
		// Forget removes the entries of who that are not to be kept, and says how many.
		Forget(ctx context.Context, who chat.Person, keep func(Entry) bool) (int, error)
	}
	Zone *time.Location
}

const (
	notedTitle = "## Noted"
	fewest     = 3  // characters that name what is to be forgotten
	mostLost   = 20 // lines and entries that are forgotten at a word
	shown      = 10 // changes, or lines that were forgotten
)

// A refusal tells a person why nothing was done.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	refusedFull       refusal = "My memory of you is full, so I noted nothing: `/forget` something first."
	refusedUnreadable refusal = "My memory of you cannot be read just now, so I noted nothing."
)

// answer tells what came of a request: text, unless it was refused.
func answer(err error, text string) (string, error) {
	var r refusal
	switch {
	case errors.As(err, &r):
		return string(r), nil
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
	c := Change{Who: who, By: "/remember", Key: key, Why: clip(text, 100)}
	_, err := n.Versions.edit(ctx, c, func(_ *head, texts map[string]string) error {
		memory, ok := texts[memoryFile]
		if !ok {
			return refusedUnreadable
		}
		texts[memoryFile] = noted(memory, "- "+time.Now().In(n.Zone).Format(time.DateOnly)+": "+text+"\n")
		if len(texts[memoryFile]) > maxFile {
			return refusedFull
		}
		return nil
	})
	return answer(err, "Noted.")
}

// noted adds a line to what a person had noted in their memory.
func noted(memory, line string) string {
	own, heard := apart(memory)
	all := slices.Collect(strings.Lines(ended(own)))
	is := func(l string) bool { return strings.EqualFold(strings.TrimSpace(l), notedTitle) }
	at := slices.IndexFunc(all, is)
	if at < 0 {
		return together(strings.TrimLeft(strings.TrimRight(own, "\n")+"\n\n"+notedTitle+"\n\n"+line, "\n"), heard)
	}
	end := at + 1
	for i := end; i < len(all) && !strings.HasPrefix(all[i], "#"); i++ {
		if strings.TrimSpace(all[i]) != "" {
			end = i + 1
		}
	}
	return together(strings.Join(slices.Insert(all, end, line), ""), heard)
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
	entries := 0
	for e, err := range n.Past.Since(ctx, who, 0) {
		if err != nil {
			return "", err
		}
		if holds(e.Text) {
			entries++
		}
	}
	c, err := n.Versions.edit(ctx, Change{Who: who, By: "/forget", Key: key}, func(_ *head, texts map[string]string) error {
		lines := 0
		for _, name := range []string{memoryFile, userFile} {
			rest, lost := without(texts[name], holds)
			if texts[name] = rest; len(lost) > 0 {
				lines += len(lost)
			}
		}
		if lines+entries > mostLost && !all {
			return refusal(fmt.Sprintf("%s and %s of past conversations hold that. Say it in more words, or `/forget all %s` if you mean them all.",
				count(lines, "line", "lines"), count(entries, "part", "parts"), what))
		}
		return nil
	})
	if err != nil {
		return answer(err, "")
	}
	lost, err := n.lost(ctx, c, holds)
	if err != nil {
		return "", err
	}
	entries, err = n.Past.Forget(ctx, who, func(e Entry) bool { return !holds(e.Text) })
	return answer(err, forgotten(c, lost, entries))
}

// without returns the lines of text that which does not want, and those that it does.
func without(text string, which func(string) bool) (rest string, gone []string) {
	for line := range strings.Lines(text) {
		title := strings.TrimSpace(line)
		if !which(line) || title == notedTitle || title == heardTitle {
			rest += line
		} else {
			gone = append(gone, title)
		}
	}
	return rest, gone
}

// lost returns the lines that c took away.
func (n *Notes) lost(ctx context.Context, c Change, which func(string) bool) (all []string, err error) {
	err = n.Versions.with(ctx, c.Who, func(*head, map[string]string) error {
		for _, name := range names(c.Who) {
			before, err := n.Versions.text(ctx, c.Who, c.Files[name].Before)
			if err != nil {
				return err
			}
			_, gone := without(before, which)
			all = append(all, gone...)
		}
		return nil
	})
	return all, err
}

func forgotten(c Change, lost []string, entries int) string {
	if len(lost) == 0 && entries == 0 {
		return "I know nothing of that."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Forgotten: %s and %s of past conversations.", count(len(lost), "line", "lines"), count(entries, "part", "parts"))
	for i, line := range lost {
		if i == shown {
			b.WriteString("\n- …")
			break
		}
		b.WriteString("\n- " + clip(strings.TrimLeft(line, "-*> "), 200))
	}
	if len(lost) > 0 {
		fmt.Fprintf(&b, "\n\n`/dream restore %s` brings the lines back.", c.ID)
	}
	return b.String()
}
