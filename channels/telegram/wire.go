package telegram

import (
	"fmt"
	"strings"

	"github.com/go-telegram/bot/models"
)

// An update and a message are what we read of Telegram's own: the fewer
// fields, the fewer that a change at Telegram can make unreadable.
type update struct {
	ID      int64    `json:"update_id"`
	Message *message `json:"message"`
	Edited  *message `json:"edited_message"`
}

// any returns the message in u, nil if it is none of the kinds that are heard.
func (u update) any() *message {
	if u.Message != nil {
		return u.Message
	}
	return u.Edited
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
	ReplyTo   *message     `json:"reply_to_message"`
	External  *external    `json:"external_reply"`
	Quote     *words       `json:"quote"`
	MovedTo   int64        `json:"migrate_to_chat_id"`
	MovedFrom int64        `json:"migrate_from_chat_id"`
	Text      string       `json:"text"`
	Caption   string       `json:"caption"`
	content
}

type external struct {
	Origin origin `json:"origin"`
	content
}

type words struct {
	Text string `json:"text"`
}

// An origin says who wrote a forwarded message first.
type origin struct {
	User   *models.User `json:"sender_user"`
	Hidden string       `json:"sender_user_name"`
	Sender *models.Chat `json:"sender_chat"`
	Chat   *models.Chat `json:"chat"`
}

func (o origin) name() string {
	switch {
	case o.User != nil:
		return userName(o.User)
	case o.Sender != nil:
		return chatName(o.Sender)
	case o.Chat != nil:
		return chatName(o.Chat)
	case o.Hidden != "":
		return o.Hidden
	}
	return "someone"
}

func userName(u *models.User) string {
	if name := strings.TrimSpace(u.FirstName + " " + u.LastName); name != "" {
		return name
	}
	return u.Username
}

func chatName(c *models.Chat) string {
	if c.Title != "" {
		return c.Title
	}
	return strings.TrimSpace(c.FirstName + " " + c.LastName)
}

// A content is what a message shows besides its text.
type content struct {
	Animation *media           `json:"animation"`
	Audio     *media           `json:"audio"`
	Document  *media           `json:"document"`
	Photo     []media          `json:"photo"`
	PaidMedia *media           `json:"paid_media"`
	Sticker   *media           `json:"sticker"`
	Story     *media           `json:"story"`
	Video     *media           `json:"video"`
	VideoNote *media           `json:"video_note"`
	Voice     *media           `json:"voice"`
	Game      *media           `json:"game"`
	Invoice   *media           `json:"invoice"`
	Checklist *media           `json:"checklist"`
	Giveaway  *media           `json:"giveaway"`
	Contact   *models.Contact  `json:"contact"`
	Dice      *models.Dice     `json:"dice"`
	Poll      *poll            `json:"poll"`
	Venue     *models.Venue    `json:"venue"`
	Location  *models.Location `json:"location"`
}

type media struct {
	Seconds   int    `json:"duration"`
	FileName  string `json:"file_name"`
	Title     string `json:"title"`
	Performer string `json:"performer"`
	Emoji     string `json:"emoji"`
}

type poll struct {
	Question string  `json:"question"`
	Options  []words `json:"options"`
}

// String describes c in words, such as "[voice message, 12 s]". It is empty
// when there is nothing but text.
func (c content) String() string {
	switch {
	case c.Venue != nil: // has a location too
		return fmt.Sprintf("[place: %s, %s (%s)]", c.Venue.Title, c.Venue.Address, spot(c.Venue.Location))
	case c.Location != nil:
		return "[location: " + spot(*c.Location) + "]"
	case c.Contact != nil:
		name := strings.TrimSpace(c.Contact.FirstName + " " + c.Contact.LastName)
		return fmt.Sprintf("[contact: %s, %s]", name, c.Contact.PhoneNumber)
	case c.Dice != nil:
		return fmt.Sprintf("[dice %s: %d]", c.Dice.Emoji, c.Dice.Value)
	case c.Poll != nil:
		return c.Poll.String()
	case c.Photo != nil:
		return "[photo]"
	}
	for _, k := range []struct {
		name string
		m    *media
	}{
		{"animation", c.Animation}, // has a document too
		{"voice message", c.Voice}, {"video message", c.VideoNote}, {"video", c.Video}, {"audio", c.Audio},
		{"file", c.Document}, {"sticker", c.Sticker}, {"story", c.Story}, {"paid media", c.PaidMedia},
		{"game", c.Game}, {"invoice", c.Invoice}, {"checklist", c.Checklist}, {"giveaway", c.Giveaway},
	} {
		if k.m != nil {
			return "[" + k.name + k.m.String() + "]"
		}
	}
	return ""
}

// String returns what is known of m, to follow the name of its kind.
func (m media) String() string {
	var s string
	for _, part := range []string{m.Emoji, m.FileName, m.Title} {
		if part != "" {
			s += " " + part
		}
	}
	if m.Performer != "" {
		s += " by " + m.Performer
	}
	if m.Seconds > 0 {
		s += fmt.Sprintf(", %d s", m.Seconds)
	}
	return s
}

func (p poll) String() string {
	options := make([]string, len(p.Options))
	for i, o := range p.Options {
		options[i] = o.Text
	}
	return "[poll: " + p.Question + " " + strings.Join(options, " / ") + "]"
}

func spot(l models.Location) string { return fmt.Sprintf("%.5f, %.5f", l.Latitude, l.Longitude) }
