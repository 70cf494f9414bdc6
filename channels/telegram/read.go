package telegram

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/channels/network"
	"parley/chat"
	"parley/lazyregexp"
)

// A reader turns updates into messages to the bot.
type reader struct {
	channel string // name in config.json
	mode    string // which messages of groups are for the bot: "", mention, all, none
	self    *identity
	groups  *groupMoves
	clock   *network.ServerClock
	albums  sync.Map // id of a group -> id of the album that was last addressed to the bot there
}

func newReader(cfg *Config, api *botAPI, groups *groupMoves, log *slog.Logger) *reader {
	return &reader{
		channel: cfg.Name,
		mode:    cfg.Groups,
		self:    newIdentity(cfg, api, log),
		groups:  groups,
		clock:   api.client.clock,
	}
}

// read turns u into a message. It is not ok if u has nothing for the bot. After an
// error u must be read again.
func (r *reader) read(ctx context.Context, u update) (m chat.Message, ok bool, err error) {
	w := u.subject()
	switch {
	case w == nil:
		return m, false, nil
	case u.Press != nil:
		return r.readPress(ctx, u.Press)
	case w.MovedTo != 0:
		return m, false, r.groups.remember(ctx, w.Chat.ID, w.MovedTo)
	case w.MovedFrom != 0:
		return m, false, r.groups.remember(ctx, w.MovedFrom, w.Chat.ID)
	}
	text := cmp.Or(markQuotes(w.Text, w.Spans), markQuotes(w.Caption, w.InCaption))
	edited := u.Message == nil
	if text == "" && (edited || w.content == "") { // an edit without text is a live location that moves
		return m, false, nil
	}
	if from, _ := w.sender(); from == 0 {
		return m, false, nil
	}
	text, ok, err = r.addressed(ctx, w, text)
	if err != nil || !ok {
		return m, false, err
	}
	m, err = r.newMessage(ctx, w, text)
	if err != nil {
		return chat.Message{}, false, err
	}
	if edited {
		m.Edits = m.ID
		m.ID = fmt.Sprintf("%se%d", m.ID, u.ID)
		m.Time = r.clock.Local(time.Unix(w.EditDate, 0))
	}
	return m, true, nil
}

// newMessage returns the message that w is, with that text.
func (r *reader) newMessage(ctx context.Context, w *message, text string) (chat.Message, error) {
	at, moved, err := r.address(ctx, w)
	if err != nil {
		return chat.Message{}, err
	}
	from, name := w.sender()
	m := chat.Message{
		ID:      messageID(w.ID, moved),
		Account: r.self.id,
		At:      at,
		From:    chat.Sender{ID: strconv.FormatInt(from, 10), Name: name},
		Group:   w.isGroup(),
		Text:    text,
		Files:   w.files,
		Quote:   r.quote(w, moved),
		Time:    r.clock.Local(time.Unix(w.Date, 0)),
	}
	if len(w.files) == 0 || strings.HasPrefix(w.content, "sticker") { // whose emoji carries the meaning
		m.Media = w.content
	}
	if m.Group && w.isReply() && !r.self.is(w.ReplyTo.From) { // "what is this?" below a photo sent to others
		m.Files = slices.Concat(m.Files, w.ReplyTo.files)
	}
	switch {
	case w.Forward != nil: // somebody else's words: nothing in them is a command
		name := w.Forward.name()
		if r.self.is(w.Forward.User) {
			name = "you"
		}
		makeForwarded(&m, name, w.withContent(text))
	case w.Via != nil: // nor in those of an inline bot
		makeForwarded(&m, userName(w.Via), w.withContent(text))
	}
	return m, nil
}

// makeForwarded makes text the words of somebody else that m only quotes.
func makeForwarded(m *chat.Message, from, text string) {
	m.Text = ""
	m.Media = ""
	m.Quote = &chat.Quote{From: from, Text: text, Forwarded: true}
}

// readPress turns the press of a button into a message. It is not ok for a button
// that is not ours.
func (r *reader) readPress(ctx context.Context, p *press) (m chat.Message, ok bool, err error) {
	answer := network.Pressed(p.Data, newReceipt(p.Message.Chat.ID, []int{p.Message.ID}))
	if answer == nil || p.ID == "" || p.From.ID == 0 || p.From.IsBot {
		return m, false, nil
	}
	at, _, err := r.address(ctx, p.Message)
	if err != nil {
		return m, false, err
	}
	return chat.Message{
		ID:      "cb" + p.ID,
		Account: r.self.id,
		At:      at,
		Group:   p.Message.isGroup(),
		Time:    time.Now(),
		From:    chat.Sender{ID: strconv.FormatInt(p.From.ID, 10), Name: userName(&p.From)},
		Answer:  answer,
	}, true, nil
}

// address returns the chat that w is from, and whether it has moved.
func (r *reader) address(ctx context.Context, w *message) (at chat.Address, moved bool, err error) {
	id, moved, err := r.groups.original(ctx, w.Chat.ID)
	at = chat.Address{Channel: r.channel, Chat: strconv.FormatInt(id, 10)}
	if w.InTopic && w.Thread != 0 { // other threads are mere replies
		at.Thread = strconv.Itoa(w.Thread)
	}
	return at, moved, err
}

// commandForm matches a command such as /new@parleybot: 1 is /new, 2 is parleybot.
var commandForm = lazyregexp.New(`^(/[A-Za-z0-9_]{1,64})(?:@([A-Za-z0-9_]+))?`)

// addressed reports whether w, which has that text, is addressed to the bot, and
// returns the text without the bot's name.
func (r *reader) addressed(ctx context.Context, w *message, text string) (rest string, ok bool, err error) {
	group := w.isGroup()
	command := commandForm.FindStringSubmatch(text)
	if !group && (command == nil || command[2] == "") {
		return text, true, nil
	}
	if group && r.mode == "none" {
		return "", false, nil
	}
	name, err := r.self.name(ctx)
	if err != nil {
		return "", false, err
	}
	if command != nil {
		if command[2] != "" && !strings.EqualFold(command[2], name) { // another bot's
			return text, !group, nil
		}
		return command[1] + text[len(command[0]):], true, nil
	}
	mentioned, rest := cutMention(text, name)
	ok = mentioned || w.isReply() && r.self.is(w.ReplyTo.From) || r.mode == "all"
	return rest, r.albumAddressed(w, ok), nil
}

// albumAddressed reports whether w is addressed to the bot if it is part of an
// album: one of the album's messages has the text for all of them.
func (r *reader) albumAddressed(w *message, addressed bool) bool {
	if w.Album == "" {
		return addressed
	}
	if addressed {
		r.albums.Store(w.Chat.ID, w.Album)
		return true
	}
	last, _ := r.albums.Load(w.Chat.ID)
	return last == w.Album
}

// cutMention reports whether text mentions @name, and returns the text without a
// mention at its beginning.
func cutMention(text, name string) (found bool, rest string) {
	form := regexp.MustCompile(`(?i)(?:^|[^\pL\pN_])(@` + regexp.QuoteMeta(name) + `\b)`)
	match := form.FindStringSubmatchIndex(text)
	if match == nil {
		return false, text
	}
	rest = strings.TrimLeft(text[match[3]:], " \t\n,:;!-")
	if rest == "" || strings.TrimSpace(text[:match[2]]) != "" {
		return true, text
	}
	return true, rest
}

// quote returns the message that w refers to, nil if there is none.
func (r *reader) quote(w *message, moved bool) *chat.Quote {
	var q chat.Quote
	switch {
	case w.isReply():
		replied := w.ReplyTo
		q.ID = messageID(replied.ID, moved)
		q.Text = replied.withContent(cmp.Or(replied.Text, replied.Caption))
		q.From = cmp.Or(chatName(replied.OnBehalf), userName(replied.From))
		if r.self.is(replied.From) {
			q.From = "you"
		}
	case w.External != nil:
		q.From = w.External.Origin.name()
		q.Text = w.External.withContent("")
	default:
		return nil
	}
	q.Text = cmp.Or(w.Quote.Text, q.Text)
	return &q
}
