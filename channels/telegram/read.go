package telegram

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"parley/chat"
)

// read turns u into a message. said is false when u says nothing to us. An
// error means to try again.
func (c *Channel) read(ctx context.Context, u update) (m chat.Message, said bool, err error) {
	w := u.any()
	if w == nil {
		return m, false, nil
	}
	if w.MovedTo != 0 {
		return m, false, c.moved(ctx, w.Chat.ID, w.MovedTo)
	}
	if w.MovedFrom != 0 {
		return m, false, c.moved(ctx, w.MovedFrom, w.Chat.ID)
	}
	from, known := sender(w)
	text := cmp.Or(w.Text, w.Caption)
	if edited := u.Message == nil; !known || text == "" && (edited || w.content.String() == "") {
		return m, false, nil // an edit without words is a live location that moves
	}
	if text, said, err = c.addressed(ctx, w, text); err != nil || !said {
		return m, false, err
	}
	at, prefix, err := c.place(ctx, w)
	if err != nil {
		return m, false, err
	}
	m = chat.Message{
		ID: prefix + strconv.Itoa(w.ID), Account: c.id, At: at, From: from, Group: inGroup(w),
		Text: w.tell(text), Quote: c.quoted(w, prefix), Time: time.Unix(w.Date, 0),
	}
	if u.Message == nil {
		m.Edits, m.ID = m.ID, fmt.Sprintf("%se%d", m.ID, w.EditDate)
		m.Time = time.Unix(w.EditDate, 0)
	}
	return m, true, nil
}

// sender returns who said w: a person, or the group or channel on whose behalf
// it was said. The user that Telegram names in that case is nobody (R-S8).
// It is not known for bots.
func sender(w *message) (chat.Sender, bool) {
	switch {
	case w.OnBehalf != nil:
		return chat.Sender{ID: strconv.FormatInt(w.OnBehalf.ID, 10), Name: chatName(w.OnBehalf)}, true
	case w.From == nil || w.From.IsBot:
		return chat.Sender{}, false
	}
	return chat.Sender{ID: strconv.FormatInt(w.From.ID, 10), Name: userName(w.From)}, true
}

func inGroup(w *message) bool { return w.Chat.Type != models.ChatTypePrivate }

// place returns where w was said, by the id the chat had first, and what ids
// of messages begin with there. Only real topics are threads.
func (c *Channel) place(ctx context.Context, w *message) (at chat.Address, prefix string, err error) {
	id, moved, err := c.origin(ctx, w.Chat.ID)
	if moved {
		prefix = movedPrefix
	}
	at = chat.Address{Channel: c.cfg.Name, Chat: strconv.FormatInt(id, 10)}
	if w.InTopic && w.Thread != 0 {
		at.Thread = strconv.Itoa(w.Thread)
	}
	return at, prefix, err
}

// addressed reports whether w is said to us, and returns its words without our name.
func (c *Channel) addressed(ctx context.Context, w *message, text string) (string, bool, error) {
	group := inGroup(w)
	if group && c.cfg.Groups == "none" {
		return "", false, nil
	}
	if !group && !strings.HasPrefix(text, "/") {
		return text, true, nil
	}
	cmd := commandForm.FindStringSubmatch(text)
	if !group && (cmd == nil || cmd[2] == "") {
		return text, true, nil
	}
	name, err := c.name(ctx)
	if err != nil {
		return "", false, err
	}
	if cmd != nil {
		ours := cmd[2] == "" || strings.EqualFold(cmd[2], name)
		if ours {
			text = cmd[1] + text[len(cmd[0]):]
		}
		return text, ours || !group, nil
	}
	mentioned, rest := mention(text, name)
	replied := w.replied() && w.ReplyTo.From != nil && c.isUs(w.ReplyTo.From)
	return rest, mentioned || replied || c.cfg.Groups == "all", nil
}

// commandForm matches a command such as /new@parleybot: 1 is /new, 2 is parleybot.
var commandForm = regexp.MustCompile(`^(/[A-Za-z0-9_]{1,64})(?:@([A-Za-z0-9_]+))?`)

// mention reports whether text mentions @name, and returns text without a mention
// that it begins with.
func mention(text, name string) (found bool, rest string) {
	form := regexp.MustCompile(`(?i)(?:^|[^\pL\pN_])(@` + regexp.QuoteMeta(name) + `\b)`)
	at := form.FindStringSubmatchIndex(text)
	if at == nil {
		return false, text
	}
	rest = strings.TrimLeft(text[at[3]:], " \t\n,:;!-")
	if rest == "" || strings.TrimSpace(text[:at[2]]) != "" {
		return true, text
	}
	return true, rest
}

// tell returns the words of w with what goes with them.
func (w *message) tell(text string) string {
	if shown := w.content.String(); text == "" {
		text = shown
	} else if shown != "" {
		text += "\n" + shown
	}
	if w.Forward != nil {
		text = "[forwarded from " + w.Forward.name() + "]\n" + text
	}
	return text
}

// replied reports whether w answers a message. In a topic every message
// formally answers the one that opened it.
func (w *message) replied() bool {
	return w.ReplyTo != nil && (!w.InTopic || w.ReplyTo.ID != w.Thread)
}

// quoted returns the message that w refers to, nil if there is none.
func (c *Channel) quoted(w *message, prefix string) *chat.Quote {
	var q chat.Quote
	switch {
	case w.replied():
		q.ID = prefix + strconv.Itoa(w.ReplyTo.ID)
		q.Text = w.ReplyTo.tell(cmp.Or(w.ReplyTo.Text, w.ReplyTo.Caption))
		if u := w.ReplyTo.From; u != nil && c.isUs(u) {
			q.From = "you"
		} else if s := w.ReplyTo; s.OnBehalf != nil {
			q.From = chatName(s.OnBehalf)
		} else if u != nil {
			q.From = userName(u)
		}
	case w.External != nil:
		q.From, q.Text = w.External.Origin.name(), w.External.content.String()
	default:
		return nil
	}
	if w.Quote != nil && w.Quote.Text != "" {
		q.Text = w.Quote.Text
	}
	return &q
}

func (c *Channel) isUs(u *models.User) bool { return strconv.FormatInt(u.ID, 10) == c.id }
