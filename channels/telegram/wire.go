package telegram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/go-telegram/bot/models"

	"parley/chat"
)

// An update and a message are what we read of Telegram's own: the fewer
// fields, the fewer that a change at Telegram can make unreadable.
type update struct {
	ID      int64    `json:"update_id"`
	Message *message `json:"message"`
	Edited  *message `json:"edited_message"`
	Press   *press   `json:"callback_query"`
}

// any returns the message that u is about, nil if it is none of the kinds that are heard.
func (u update) any() *message {
	if u.Press != nil {
		return u.Press.Message
	}
	return cmp.Or(u.Message, u.Edited)
}

// A press is that of a button.
type press struct {
	ID      string      `json:"id"`
	From    models.User `json:"from"`
	Message *message    `json:"message"` // which has the button; of an old one only its id and chat
	Data    string      `json:"data"`
}

type message struct {
	ID        int          `json:"message_id"`
	Thread    int          `json:"message_thread_id"`
	InTopic   bool         `json:"is_topic_message"`
	From      *models.User `json:"from"`
	OnBehalf  *models.Chat `json:"sender_chat"`
	Chat      models.Chat  `json:"chat"`
	Date      int64        `json:"date"`
	EditDate  int64        `json:"edit_date"`
	Forward   *origin      `json:"forward_origin"`
	Via       *models.User `json:"via_bot"` // a bot that wrote it for the person who sent it
	ReplyTo   *message     `json:"reply_to_message"`
	External  *message     `json:"external_reply"` // its Origin and content only
	Origin    origin       `json:"origin"`
	Quote     words        `json:"quote"`
	MovedTo   int64        `json:"migrate_to_chat_id"`
	MovedFrom int64        `json:"migrate_from_chat_id"`
	Text      string       `json:"text"`
	Caption   string       `json:"caption"`
	Spans     []span       `json:"entities"`
	InCaption []span       `json:"caption_entities"`
	Album     string       `json:"media_group_id"` // the same of all its messages

	content string      // what it shows besides its text, such as "voice 12 s"
	files   []chat.File // and what of that is a file
}

// A span says what a part of a text is, such as a "blockquote". Offset and Length
// count UTF-16 code units.
type span struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

// quoting returns text with the lines that its spans quote as Markdown has them:
// these are not the writer's own words.
func quoting(text string, spans []span) string {
	if !slices.ContainsFunc(spans, span.quotes) {
		return text
	}
	var b strings.Builder
	at := 0
	for line := range strings.Lines(text) {
		end := at + len(utf16.Encode([]rune(line)))
		if slices.ContainsFunc(spans, func(s span) bool { return s.quotes() && s.Offset < end && at < s.Offset+s.Length }) {
			b.WriteString("> ")
		}
		b.WriteString(line)
		at = end
	}
	return b.String()
}

func (s span) quotes() bool { return s.Type == "blockquote" || s.Type == "expandable_blockquote" }

type words struct {
	Text string `json:"text"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *message) UnmarshalJSON(raw []byte) error {
	type fields message
	if err := json.Unmarshal(raw, (*fields)(w)); err != nil || w.Text != "" { // text comes alone: beside anything else there is a caption
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for _, kind := range kinds {
		if thing := all[kind]; thing != nil {
			w.content, w.files = describe(kind, thing), filesIn(kind, thing)
			break
		}
	}
	return nil
}

var (
	// kinds are what a message may show besides its text. An animation has a
	// document, too, and a venue a location.
	kinds = strings.Fields("photo animation venue voice video_note video audio document sticker location " +
		"contact poll dice story paid_media game invoice checklist giveaway")
	// details are what tells people something about these.
	details = strings.Fields("emoji file_name title performer address first_name last_name phone_number question value latitude longitude duration")
)

// describe says what is known of a thing, such as "document report.pdf".
func describe(kind string, thing any) string {
	text := strings.ReplaceAll(kind, "_", " ")
	of, _ := thing.(map[string]any) // a photo is a list
	for _, key := range details {
		if of[key] != nil {
			text += fmt.Sprint(" ", of[key])
		}
	}
	if of["duration"] != nil {
		text += " s"
	}
	return text
}

// An origin says who wrote a forwarded message first.
type origin struct {
	User   *models.User `json:"sender_user"`
	Hidden string       `json:"sender_user_name"`
	Sender *models.Chat `json:"sender_chat"`
	Chat   *models.Chat `json:"chat"`
}

func (o origin) name() string {
	return cmp.Or(userName(o.User), chatName(cmp.Or(o.Sender, o.Chat)), o.Hidden, "someone")
}

func userName(u *models.User) string {
	if u == nil {
		return ""
	}
	return cmp.Or(strings.TrimSpace(u.FirstName+" "+u.LastName), u.Username)
}

func chatName(c *models.Chat) string {
	if c == nil {
		return ""
	}
	return cmp.Or(c.Title, strings.TrimSpace(c.FirstName+" "+c.LastName))
}
