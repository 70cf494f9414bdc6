package telegram

import (
	"cmp"
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
func (u update) any() *message { return cmp.Or(u.Message, u.Edited) }

type message struct {
	ID       int          `json:"message_id"`
	Thread   int          `json:"message_thread_id"`
	InTopic  bool         `json:"is_topic_message"`
	From     *models.User `json:"from"`
	OnBehalf *models.Chat `json:"sender_chat"`
	Chat     models.Chat  `json:"chat"`
	Date     int64        `json:"date"`
	EditDate int64        `json:"edit_date"`
	Forward  *origin      `json:"forward_origin"`
	ReplyTo  *message     `json:"reply_to_message"`
	External *external    `json:"external_reply"`
	Quote    struct {
		Text string `json:"text"`
	} `json:"quote"`
	MovedTo   int64  `json:"migrate_to_chat_id"`
	MovedFrom int64  `json:"migrate_from_chat_id"`
	Text      string `json:"text"`
	Caption   string `json:"caption"`
	content
}

type external struct {
	Origin origin `json:"origin"`
	content
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

// A content is what a message shows besides its text.
type content struct {
	Animation *thing  `json:"animation"`
	Audio     *thing  `json:"audio"`
	Checklist *thing  `json:"checklist"`
	Contact   *thing  `json:"contact"`
	Dice      *thing  `json:"dice"`
	Document  *thing  `json:"document"`
	Game      *thing  `json:"game"`
	Giveaway  *thing  `json:"giveaway"`
	Invoice   *thing  `json:"invoice"`
	Location  *thing  `json:"location"`
	PaidMedia *thing  `json:"paid_media"`
	Photo     []thing `json:"photo"`
	Poll      *thing  `json:"poll"`
	Sticker   *thing  `json:"sticker"`
	Story     *thing  `json:"story"`
	Venue     *thing  `json:"venue"`
	Video     *thing  `json:"video"`
	VideoNote *thing  `json:"video_note"`
	Voice     *thing  `json:"voice"`
}

// String describes c in words, such as "[voice message, 12 s]". It is empty
// when there is nothing but text.
func (c content) String() string {
	if c.Photo != nil {
		return "[photo]"
	}
	for _, k := range []struct {
		name  string
		thing *thing
	}{
		{"animation", c.Animation}, {"place", c.Venue}, // have a document and a location, too
		{"voice message", c.Voice}, {"video message", c.VideoNote}, {"video", c.Video}, {"audio", c.Audio},
		{"file", c.Document}, {"sticker", c.Sticker}, {"location", c.Location}, {"contact", c.Contact},
		{"poll", c.Poll}, {"dice", c.Dice}, {"story", c.Story}, {"paid media", c.PaidMedia}, {"game", c.Game},
		{"invoice", c.Invoice}, {"checklist", c.Checklist}, {"giveaway", c.Giveaway},
	} {
		if k.thing != nil {
			return "[" + k.name + k.thing.String() + "]"
		}
	}
	return ""
}

// A thing is any of the kinds of content, by what can be said about it.
type thing struct {
	Emoji     string  `json:"emoji"`
	FileName  string  `json:"file_name"`
	Title     string  `json:"title"`
	Performer string  `json:"performer"`
	Address   string  `json:"address"`
	FirstName string  `json:"first_name"`
	LastName  string  `json:"last_name"`
	Phone     string  `json:"phone_number"`
	Question  string  `json:"question"`
	Value     int     `json:"value"`
	Seconds   int     `json:"duration"`
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// String returns what is known of t, to follow the name of its kind.
func (t thing) String() string {
	var s string
	for _, part := range []string{t.Emoji, t.FileName, t.Title, t.Performer, t.Address, t.FirstName, t.LastName, t.Phone, t.Question} {
		if part != "" {
			s += " " + part
		}
	}
	if t.Value != 0 {
		s += fmt.Sprint(" ", t.Value)
	}
	if t.Latitude != 0 || t.Longitude != 0 {
		s += fmt.Sprintf(" %.5f %.5f", t.Latitude, t.Longitude)
	}
	if t.Seconds > 0 {
		s += fmt.Sprintf(", %d s", t.Seconds)
	}
	return s
}
