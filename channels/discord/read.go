package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/chat"
)

// What we read of Discord's own: the fewer fields, the fewer that a change at
// Discord can make unreadable.
type (
	message struct {
		ID        string    `json:"id"`
		Channel   string    `json:"channel_id"`
		Guild     string    `json:"guild_id"` // not in history
		Type      int       `json:"type"`
		Flags     int       `json:"flags"`
		Author    user      `json:"author"`
		Member    member    `json:"member"`
		Webhook   string    `json:"webhook_id"`
		Text      string    `json:"content"`
		Time      time.Time `json:"timestamp"`
		Edited    time.Time `json:"edited_timestamp"`
		Mentions  []user    `json:"mentions"`
		Roles     []string  `json:"mention_roles"`
		Files     []file    `json:"attachments"`
		Stickers  []named   `json:"sticker_items"`
		Poll      *poll     `json:"poll"`
		Reference struct {
			Type int `json:"type"` // 1: passed on
		} `json:"message_reference"`
		ReplyTo *message `json:"referenced_message"`
		Passed  []struct {
			Message message `json:"message"`
		} `json:"message_snapshots"`
		raw json.RawMessage // as it came
	}
	user struct {
		ID   string `json:"id"`
		Name string `json:"username"`
		Full string `json:"global_name"`
		Bot  bool   `json:"bot"`
	}
	member struct {
		Nick string `json:"nick"`
		User *user  `json:"user"` // in interactions
	}
	file struct {
		ID   string `json:"id"`
		Name string `json:"filename"`
		Type string `json:"content_type"`
		Size int64  `json:"size"`
		URL  string `json:"url"`
	}
	named struct {
		Name string `json:"name"`
	}
	poll struct {
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
	}
)

// The types of messages that people write, the flag of spoken ones, and the types of threads.
const (
	firstThread  = 10
	lastThread   = 12
	plainMessage = 0
	replyMessage = 19
	voiceFlag    = 1 << 13
	passedOn     = 1
	staleEdit    = 24 * time.Hour // a change to a message that is not a correction, such as its being pinned
)

var snowflake = regexp.MustCompile(`^[0-9]{1,20}$`)

// messageIn decodes raw.
func messageIn(raw json.RawMessage) (w message, err error) {
	err = json.Unmarshal(raw, &w)
	if err == nil && (!snowflake.MatchString(w.ID) || !snowflake.MatchString(w.Channel)) {
		err = errors.New("a message without an id")
	}
	w.raw = raw
	return w, err
}

// read turns w into a message. said is false when w says nothing to us. An
// error means to try again.
func (c *Channel) read(ctx context.Context, w message, edited bool) (m chat.Message, said bool, err error) {
	person := snowflake.MatchString(w.Author.ID) && !w.Author.Bot && w.Webhook == ""
	if !person || w.Type != plainMessage && w.Type != replyMessage || edited && (w.Edited.IsZero() || time.Since(c.server.Local(w.Edited)) > staleEdit) {
		return m, false, nil
	}
	text, files, media := w.Text, c.files(w, w), w.media()
	if text == "" && len(files) == 0 && media == "" && len(w.Passed) == 0 {
		return m, false, nil
	}
	if text, said, err = c.addressed(ctx, w); err != nil || !said {
		return m, false, err
	}
	m = chat.Message{
		ID: w.ID, Account: c.me.ID, From: chat.Sender{ID: w.Author.ID, Name: w.Member.name(w.Author)}, Group: w.Guild != "",
		Text: text, Files: files, Media: media, Quote: c.quoted(w), Time: c.server.Local(w.Time),
	}
	if m.At, err = c.at(ctx, w.Channel, w.Guild, w.Author.ID); err != nil {
		return m, false, err
	}
	if m.Group && w.ReplyTo != nil && w.ReplyTo.Author.ID != c.me.ID { // "what is this?", said to a picture that was not said to us
		m.Files = slices.Concat(m.Files, c.files(message{ID: w.ReplyTo.ID, Channel: w.Channel}, *w.ReplyTo))
	}
	if len(w.Passed) > 0 && w.Reference.Type == passedOn { // the words of somebody else: nothing in them is a command
		p := w.Passed[0].Message
		m.Text, m.Media, m.Files = "", "", c.files(w, p)
		m.Quote = &chat.Quote{From: "someone", Text: p.tell(), Forwarded: true}
	}
	if edited {
		m.Edits, m.ID, m.Time = m.ID, fmt.Sprintf("%se%d", w.ID, w.Edited.UnixMilli()), w.Edited
	}
	return m, true, nil
}

func (m member) name(u user) string { return cmp.Or(m.Nick, u.Full, u.Name) }

// media tells what w shows besides text and files.
func (w message) media() string {
	var all []string
	for _, s := range w.Stickers {
		all = append(all, "sticker "+s.Name)
	}
	if w.Poll != nil {
		all = append(all, "poll "+w.Poll.Question.Text)
	}
	return strings.Join(all, ", ")
}

// files returns the files of shown, which is w or something within it. Where
// they are is asked anew when they are fetched: the addresses that Discord
// gives are good for a day.
func (c *Channel) files(w, shown message) (fs []chat.File) {
	for _, f := range shown.Files {
		fs = append(fs, chat.File{
			Name: f.Name, Type: f.Type, Size: f.Size, Ref: strings.Join([]string{w.Channel, w.ID, f.ID}, "/"),
			Voice: shown.Flags&voiceFlag != 0,
		})
	}
	return fs
}

// tell returns the words of w with what else it shows.
func (w message) tell() string {
	all := []string{w.Text}
	for _, f := range w.Files {
		all = append(all, "["+f.Name+"]")
	}
	if media := w.media(); media != "" {
		all = append(all, "["+media+"]")
	}
	return strings.TrimSpace(strings.Join(all, "\n"))
}

// quoted returns the message that w answers, nil if there is none.
func (c *Channel) quoted(w message) *chat.Quote {
	r := w.ReplyTo
	if r == nil {
		return nil
	}
	q := &chat.Quote{ID: r.ID, From: r.Member.name(r.Author), Text: legible(r.tell(), r.Mentions)}
	if r.Author.ID == c.me.ID {
		q.From = "you"
	}
	return q
}

// addressed reports whether w is said to us, and returns its words without our
// name at the beginning, and with the names of others instead of their ids.
func (c *Channel) addressed(ctx context.Context, w message) (string, bool, error) {
	ours := []string{"<@" + c.me.ID + ">", "<@!" + c.me.ID + ">"}
	named := slices.ContainsFunc(w.Mentions, func(u user) bool { return u.ID == c.me.ID })
	if w.Guild != "" {
		if c.cfg.Groups == "none" {
			return "", false, nil
		}
		if len(w.Roles) > 0 {
			role, err := c.role(ctx, w.Guild)
			if err != nil {
				return "", false, err
			}
			named = named || slices.Contains(w.Roles, role)
			ours = append(ours, "<@&"+role+">")
		}
		if !named && c.cfg.Groups != "all" && (w.ReplyTo == nil || w.ReplyTo.Author.ID != c.me.ID) {
			return "", false, nil
		}
	}
	text := strings.TrimSpace(w.Text)
	for _, our := range ours {
		if rest, found := strings.CutPrefix(text, our); found {
			if rest = strings.TrimLeft(rest, " \t\n,:;!-"); rest != "" {
				text = rest
			}
		}
	}
	return legible(text, w.Mentions), true, nil
}

// legible writes the names of people for their ids.
func legible(text string, mentions []user) string {
	for _, u := range mentions {
		name := "@" + cmp.Or(u.Full, u.Name)
		text = strings.NewReplacer("<@"+u.ID+">", name, "<@!"+u.ID+">", name).Replace(text)
	}
	return text
}

// at returns the address of the chat. A person's private chat is called by the
// person, so that it is the same whoever speaks first.
func (c *Channel) at(ctx context.Context, id, guild, author string) (chat.Address, error) {
	if guild == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.direct[author] = id
		return c.Direct(author), nil
	}
	parent, err := c.known(c.parents, id, func() (string, error) {
		var is struct {
			Type   int    `json:"type"`
			Parent string `json:"parent_id"`
		}
		err := c.call(ctx, "GET", "/channels/"+id, nil, &is)
		switch {
		case err != nil && !said(err, 403, 404):
			return "", fmt.Errorf("ask about channel %s: %w", id, err)
		case is.Type < firstThread, is.Type > lastThread:
			return "", nil
		}
		return is.Parent, nil
	})
	if parent != "" {
		return chat.Address{Channel: c.cfg.Name, Chat: parent, Thread: id}, err
	}
	return chat.Address{Channel: c.cfg.Name, Chat: id}, err
}

// role returns our own role in the server, "" if there is none.
func (c *Channel) role(ctx context.Context, guild string) (string, error) {
	return c.known(c.roles, guild, func() (string, error) {
		var roles []struct {
			ID   string `json:"id"`
			Tags struct {
				Bot string `json:"bot_id"`
			} `json:"tags"`
		}
		err := c.call(ctx, "GET", "/guilds/"+guild+"/roles", nil, &roles)
		if err != nil && !said(err, 403, 404) {
			return "", fmt.Errorf("ask for the roles of server %s: %w", guild, err)
		}
		for _, r := range roles {
			if r.Tags.Bot == c.me.ID {
				return r.ID, nil
			}
		}
		return "", nil
	})
}

const discordEpoch = 1420070400000 // milliseconds

// madeAt returns when a snowflake was made.
func madeAt(id string) time.Time {
	n, _ := strconv.ParseInt(id, 10, 64)
	return time.UnixMilli(n>>22 + discordEpoch)
}
