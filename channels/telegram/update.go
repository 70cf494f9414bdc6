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

// updateKinds are the kinds of updates that are read.
var updateKinds = []string{"message", "edited_message", "callback_query"}

// An update and a message have only those of Telegram's fields that are read: the
// fewer there are, the fewer a change at Telegram can make unreadable.
type update struct {
	ID      int64    `json:"update_id"`
	Message *message `json:"message"`
	Edited  *message `json:"edited_message"`
	Press   *press   `json:"callback_query"`
}

// subject returns the message that u is about, nil if u is of another kind.
func (u update) subject() *message {
	if u.Press != nil {
		return u.Press.Message
	}
	return cmp.Or(u.Message, u.Edited)
}

// A press is somebody's press of a button.
type press struct {
	ID      string      `json:"id"`
	From    models.User `json:"from"`
	Message *message    `json:"message"` // has the button; an old one has only its id and chat
	Data    string      `json:"data"`
}

type message struct {
	ID        int          `json:"message_id"`
	Thread    int          `json:"message_thread_id"`
	InTopic   bool         `json:"is_topic_message"`
	From      *models.User `json:"from"`
	OnBehalf  *models.Chat `json:"sender_chat"`
	Chat      models.Chat  `json:"chat"`
	Date      int64        `json:"date"`      // in Unix seconds
	EditDate  int64        `json:"edit_date"` // in Unix seconds
	Forward   *origin      `json:"forward_origin"`
	Via       *models.User `json:"via_bot"` // a bot that wrote it for the person who sent it
	ReplyTo   *message     `json:"reply_to_message"`
	External  *message     `json:"external_reply"` // has only an Origin and content
	Origin    origin       `json:"origin"`
	Quote     textQuote    `json:"quote"`
	MovedTo   int64        `json:"migrate_to_chat_id"`
	MovedFrom int64        `json:"migrate_from_chat_id"`
	Text      string       `json:"text"`
	Caption   string       `json:"caption"`
	Spans     []span       `json:"entities"`
	InCaption []span       `json:"caption_entities"`
	Album     string       `json:"media_group_id"` // the same for all messages of an album

	content string      // describes what it shows besides its text, such as "voice 12 s"
	files   []chat.File // the files in that
}

// isGroup reports whether the message is from a group.
func (m *message) isGroup() bool { return m.Chat.Type != models.ChatTypePrivate }

// isReply reports whether the message answers another one. In a topic every
// message formally answers the one that opened it.
func (m *message) isReply() bool {
	return m.ReplyTo != nil && (!m.InTopic || m.ReplyTo.ID != m.Thread)
}

// withContent returns text and below it the description of the content.
func (m *message) withContent(text string) string {
	if m.content == "" {
		return text
	}
	return strings.TrimLeft(text+"\n["+m.content+"]", "\n")
}

// sender returns who wrote the message: a person, or the group or channel on whose
// behalf it was sent. The user that Telegram names in that case is a placeholder
// (R-S8). The id is 0 for bots.
func (m *message) sender() (id int64, name string) {
	if m.OnBehalf != nil {
		return m.OnBehalf.ID, chatName(m.OnBehalf)
	}
	if m.From == nil || m.From.IsBot {
		return 0, ""
	}
	return m.From.ID, userName(m.From)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *message) UnmarshalJSON(raw []byte) error {
	type fields message
	if err := json.Unmarshal(raw, (*fields)(m)); err != nil {
		return err
	}
	if m.Text != "" { // there is no other content: that has a caption instead
		return nil
	}
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for _, kind := range contentKinds {
		if content := all[kind]; content != nil {
			m.content = describe(kind, content)
			m.files = filesIn(kind, content)
			break
		}
	}
	return nil
}

// A span says what a part of a text is, such as a "blockquote". Offset and Length
// count UTF-16 code units.
type span struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

func (s span) isQuote() bool { return s.Type == "blockquote" || s.Type == "expandable_blockquote" }

// markQuotes returns text with the lines that its spans quote marked as in
// Markdown: they are not the writer's own words.
func markQuotes(text string, spans []span) string {
	if !slices.ContainsFunc(spans, span.isQuote) {
		return text
	}
	var b strings.Builder
	start := 0
	for line := range strings.Lines(text) {
		end := start + len(utf16.Encode([]rune(line)))
		overlaps := func(s span) bool { return s.isQuote() && s.Offset < end && start < s.Offset+s.Length }
		if slices.ContainsFunc(spans, overlaps) {
			b.WriteString("> ")
		}
		b.WriteString(line)
		start = end
	}
	return b.String()
}

type textQuote struct {
	Text string `json:"text"`
}

var (
	// contentKinds are what a message may show besides its text. An animation also
	// has a document, and a venue a location.
	contentKinds = strings.Fields("photo animation venue voice video_note video audio document sticker location " +
		"contact poll dice story paid_media game invoice checklist giveaway")
	// contentDetails are the fields of these that mean something to people.
	contentDetails = strings.Fields("emoji file_name title performer address first_name last_name phone_number " +
		"question value latitude longitude duration")
)

// describe says what is known of the content, such as "document report.pdf".
func describe(kind string, content any) string {
	text := strings.ReplaceAll(kind, "_", " ")
	fields, _ := content.(map[string]any) // a photo is a list
	for _, key := range contentDetails {
		if fields[key] != nil {
			text += fmt.Sprint(" ", fields[key])
		}
	}
	if fields["duration"] != nil {
		text += " s"
	}
	return text
}

// fileTypes are the kinds of content that are files, with the media types of those
// that come without one.
var fileTypes = map[string]string{
	"photo":      "image/jpeg",
	"animation":  "video/mp4",
	"voice":      "audio/ogg",
	"video_note": "video/mp4",
	"video":      "video/mp4",
	"audio":      "audio/mpeg",
	"document":   "",
	"sticker":    "image/webp",
}

// filesIn returns the file that the content is, if it is one. Animated stickers are not.
func filesIn(kind string, content any) []chat.File {
	if sizes, ok := content.([]any); ok && len(sizes) > 0 { // of a photo, the largest last
		content = sizes[len(sizes)-1]
	}
	fields, _ := content.(map[string]any)
	text := func(key string) string {
		s, _ := fields[key].(string)
		return s
	}
	defaultType, isFile := fileTypes[kind]
	if !isFile || text("file_id") == "" || fields["is_animated"] == true || fields["is_video"] == true {
		return nil
	}
	size, _ := fields["file_size"].(float64)
	return []chat.File{{
		Ref:   text("file_id"),
		Name:  text("file_name"),
		Type:  cmp.Or(text("mime_type"), defaultType),
		Size:  int64(size),
		Voice: kind == "voice",
	}}
}

// An origin says who first wrote a forwarded message.
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
