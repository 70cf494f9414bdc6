package discord

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/channels/network"
	"parley/chat"
)

// A change to an older message is not a correction but, say, its being pinned.
const maxEditAge = 24 * time.Hour

// A reader turns what people send into messages to the bot.
type reader struct {
	mode      string // which messages of servers are for the bot: "", mention, all, none
	directory *directory
	clock     *network.ServerClock
}

// read turns w into a message. It is not ok if w has nothing for the bot. After an
// error w must be read again.
func (r *reader) read(ctx context.Context, w message, edited bool) (m chat.Message, ok bool, err error) {
	if !w.isPersons() || edited && !r.isCorrected(w) {
		return m, false, nil
	}
	if w.Text == "" && len(w.Files) == 0 && w.media() == "" && len(w.Snapshots) == 0 {
		return m, false, nil
	}
	text, ok, err := r.addressed(ctx, w)
	if err != nil || !ok {
		return m, false, err
	}
	at, err := r.directory.address(ctx, w.Channel, w.Guild, w.Author.ID)
	if err != nil {
		return m, false, err
	}
	m = r.newMessage(w, at, text)
	if edited {
		m.Edits = m.ID
		m.ID = fmt.Sprintf("%se%d", w.ID, w.Edited.UnixMilli())
		m.Time = w.Edited
	}
	return m, true, nil
}

// isCorrected reports whether the author corrected the message recently.
func (r *reader) isCorrected(w message) bool {
	return !w.Edited.IsZero() && time.Since(r.clock.Local(w.Edited)) <= maxEditAge
}

// newMessage returns the message that w is, with that address and text.
func (r *reader) newMessage(w message, at chat.Address, text string) chat.Message {
	m := chat.Message{
		ID:      w.ID,
		Account: r.directory.self.ID,
		At:      at,
		From:    chat.Sender{ID: w.Author.ID, Name: w.Member.name(w.Author)},
		Group:   w.Guild != "",
		Text:    text,
		Files:   filesOf(w, w),
		Media:   w.media(),
		Quote:   r.quote(w),
		Time:    r.clock.Local(w.Time),
	}
	if m.Group && w.ReplyTo != nil && !r.directory.isSelf(w.ReplyTo.Author) {
		// "what is this?" below a picture that was sent to others
		original := message{ID: w.ReplyTo.ID, Channel: w.Channel}
		m.Files = slices.Concat(m.Files, filesOf(original, *w.ReplyTo))
	}
	if w.isForwarded() { // somebody else's words: nothing in them is a command
		forwarded := w.Snapshots[0].Message
		m.Text = ""
		m.Media = ""
		m.Files = filesOf(w, forwarded)
		m.Quote = &chat.Quote{From: "someone", Text: forwarded.describe(), Forwarded: true}
	}
	return m
}

// quote returns the message that w answers, nil if there is none.
func (r *reader) quote(w message) *chat.Quote {
	replied := w.ReplyTo
	if replied == nil {
		return nil
	}
	q := &chat.Quote{
		ID:   replied.ID,
		From: replied.Member.name(replied.Author),
		Text: nameMentions(replied.describe(), replied.Mentions),
	}
	if r.directory.isSelf(replied.Author) {
		q.From = "you"
	}
	return q
}

// addressed reports whether w is addressed to the bot. It returns the text without
// the bot's name at the beginning, and with the names of others instead of their ids.
func (r *reader) addressed(ctx context.Context, w message) (text string, ok bool, err error) {
	self := r.directory.self.ID
	names := []string{"<@" + self + ">", "<@!" + self + ">"}
	mentioned := slices.ContainsFunc(w.Mentions, r.directory.isSelf)
	if w.Guild != "" {
		if r.mode == "none" {
			return "", false, nil
		}
		if len(w.Roles) > 0 {
			role, err := r.directory.role(ctx, w.Guild)
			if err != nil {
				return "", false, err
			}
			mentioned = mentioned || slices.Contains(w.Roles, role)
			names = append(names, "<@&"+role+">")
		}
		answersUs := w.ReplyTo != nil && r.directory.isSelf(w.ReplyTo.Author)
		if !mentioned && !answersUs && r.mode != "all" {
			return "", false, nil
		}
	}
	text = strings.TrimSpace(w.Text)
	for _, name := range names {
		rest, found := strings.CutPrefix(text, name)
		rest = strings.TrimLeft(rest, " \t\n,:;!-")
		if found && rest != "" {
			text = rest
		}
	}
	return nameMentions(text, w.Mentions), true, nil
}
