package telegram

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
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
	switch {
	case w == nil:
		return m, false, nil
	case u.Press != nil:
		return c.pressed(ctx, u.Press)
	case w.MovedTo != 0:
		return m, false, c.moved(ctx, w.Chat.ID, w.MovedTo)
	case w.MovedFrom != 0:
		return m, false, c.moved(ctx, w.MovedFrom, w.Chat.ID)
	}
	text := cmp.Or(quoting(w.Text, w.Spans), quoting(w.Caption, w.InCaption))
	from, name := sender(w)
	if edited := u.Message == nil; from == 0 || text == "" && (edited || w.content == "") {
		return m, false, nil // an edit without words is a live location that moves
	}
	if text, said, err = c.addressed(ctx, w, text); err != nil || !said {
		return m, false, err
	}
	at, moved, err := c.at(ctx, w)
	if err != nil {
		return m, false, err
	}
	m = chat.Message{
		ID: messageID(w.ID, moved), Account: c.id, At: at,
		From: chat.Sender{ID: strconv.FormatInt(from, 10), Name: name}, Group: inGroup(w),
		Text: text, Files: w.files, Quote: c.quoted(w, moved), Time: c.http.server.Local(time.Unix(w.Date, 0)),
	}
	if len(w.files) == 0 || strings.HasPrefix(w.content, "sticker") { // whose emoji says what it means
		m.Media = w.content
	}
	if m.Group && w.replied() && !c.isUs(w.ReplyTo.From) { // "what is this?", said to a photo that was not said to us
		m.Files = slices.Concat(m.Files, w.ReplyTo.files)
	}
	if w.Forward != nil { // the words of somebody else: nothing in them is a command
		m.Text, m.Media = "", ""
		m.Quote = &chat.Quote{From: w.Forward.name(), Text: w.tell(text), Forwarded: true}
		if c.isUs(w.Forward.User) {
			m.Quote.From = "you"
		}
	}
	if w.Via != nil && w.Forward == nil { // nor are those of a bot that they chose it from
		m.Text, m.Media = "", ""
		m.Quote = &chat.Quote{From: userName(w.Via), Text: w.tell(text), Forwarded: true}
	}
	if u.Message == nil {
		m.Edits, m.ID = m.ID, fmt.Sprintf("%se%d", m.ID, u.ID)
		m.Time = c.http.server.Local(time.Unix(w.EditDate, 0))
	}
	return m, true, nil
}

// at returns where w was said, and whether that chat has moved.
func (c *Channel) at(ctx context.Context, w *message) (at chat.Address, moved bool, err error) {
	id, moved, err := c.alias(ctx, first, w.Chat.ID)
	at = chat.Address{Channel: c.cfg.Name, Chat: strconv.FormatInt(id, 10)}
	if w.InTopic && w.Thread != 0 { // other threads are mere replies
		at.Thread = strconv.Itoa(w.Thread)
	}
	return at, moved, err
}

// sender returns who said w: a person, or the group or channel on whose behalf
// it was said. The user that Telegram names in that case is nobody (R-S8). The
// id is 0 for bots.
func sender(w *message) (id int64, name string) {
	switch {
	case w.OnBehalf != nil:
		return w.OnBehalf.ID, chatName(w.OnBehalf)
	case w.From == nil || w.From.IsBot:
		return 0, ""
	}
	return w.From.ID, userName(w.From)
}

func inGroup(w *message) bool { return w.Chat.Type != models.ChatTypePrivate }

// commandForm matches a command such as /new@parleybot: 1 is /new, 2 is parleybot.
var commandForm = regexp.MustCompile(`^(/[A-Za-z0-9_]{1,64})(?:@([A-Za-z0-9_]+))?`)

// addressed reports whether w is said to us, and returns its words without our name.
func (c *Channel) addressed(ctx context.Context, w *message, text string) (string, bool, error) {
	group := inGroup(w)
	cmd := commandForm.FindStringSubmatch(text)
	if !group && (cmd == nil || cmd[2] == "") {
		return text, true, nil
	}
	if group && c.cfg.Groups == "none" {
		return "", false, nil
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
	ours := mentioned || w.replied() && c.isUs(w.ReplyTo.From) || c.cfg.Groups == "all"
	if w.Album != "" && ours { // one of its messages has the words for all
		c.albums.Store(w.Chat.ID, w.Album)
	} else if w.Album != "" {
		last, _ := c.albums.Load(w.Chat.ID)
		ours = last == w.Album
	}
	return rest, ours, nil
}

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

// tell returns text with what else w shows.
func (w *message) tell(text string) string {
	if w.content == "" {
		return text
	}
	return strings.TrimLeft(text+"\n["+w.content+"]", "\n")
}

// replied reports whether w answers a message. In a topic every message
// formally answers the one that opened it.
func (w *message) replied() bool {
	return w.ReplyTo != nil && (!w.InTopic || w.ReplyTo.ID != w.Thread)
}

// quoted returns the message that w refers to, nil if there is none.
func (c *Channel) quoted(w *message, moved bool) *chat.Quote {
	var q chat.Quote
	switch r := w.ReplyTo; {
	case w.replied():
		q.ID, q.Text = messageID(r.ID, moved), r.tell(cmp.Or(r.Text, r.Caption))
		if q.From = cmp.Or(chatName(r.OnBehalf), userName(r.From)); c.isUs(r.From) {
			q.From = "you"
		}
	case w.External != nil:
		q.From, q.Text = w.External.Origin.name(), w.External.tell("")
	default:
		return nil
	}
	q.Text = cmp.Or(w.Quote.Text, q.Text)
	return &q
}

func (c *Channel) isUs(u *models.User) bool {
	return u != nil && strconv.FormatInt(u.ID, 10) == c.id
}
