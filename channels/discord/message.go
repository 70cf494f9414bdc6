package discord

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"parley/chat"
)

// These have only those of Discord's fields that are read: the fewer there are, the
// fewer a change at Discord can make unreadable.
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
			Type int `json:"type"`
		} `json:"message_reference"`
		ReplyTo   *message `json:"referenced_message"`
		Snapshots []struct {
			Message message `json:"message"`
		} `json:"message_snapshots"` // of forwarded messages
		raw json.RawMessage // as it arrived
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

const (
	plainMessage     = 0 // a type
	replyMessage     = 19
	voiceFlag        = 1 << 13
	forwardReference = 1 // a type of reference
)

// decodeMessage decodes raw.
func decodeMessage(raw json.RawMessage) (w message, err error) {
	if err := json.Unmarshal(raw, &w); err != nil {
		return message{}, err
	}
	if !snowflake.MatchString(w.ID) || !snowflake.MatchString(w.Channel) {
		return message{}, errors.New("a message without an id")
	}
	w.raw = raw
	return w, nil
}

// isPersons reports whether a person wrote the message.
func (w message) isPersons() bool {
	person := snowflake.MatchString(w.Author.ID) && !w.Author.Bot && w.Webhook == ""
	return person && (w.Type == plainMessage || w.Type == replyMessage)
}

// isForwarded reports whether the message forwards another one.
func (w message) isForwarded() bool {
	return len(w.Snapshots) > 0 && w.Reference.Type == forwardReference
}

// media describes what the message shows besides text and files.
func (w message) media() string {
	var parts []string
	for _, s := range w.Stickers {
		parts = append(parts, "sticker "+s.Name)
	}
	if w.Poll != nil {
		parts = append(parts, "poll "+w.Poll.Question.Text)
	}
	return strings.Join(parts, ", ")
}

// describe returns the text of the message and what else it shows.
func (w message) describe() string {
	parts := []string{w.Text}
	for _, f := range w.Files {
		parts = append(parts, "["+f.Name+"]")
	}
	if media := w.media(); media != "" {
		parts = append(parts, "["+media+"]")
	}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}

// filesOf returns the files of shown, which is w or a message within it. They are
// named by the ids of their message, because the addresses that Discord gives
// expire after a day.
func filesOf(w, shown message) (files []chat.File) {
	for _, f := range shown.Files {
		files = append(files, chat.File{
			Name:  f.Name,
			Type:  f.Type,
			Size:  f.Size,
			Ref:   strings.Join([]string{w.Channel, w.ID, f.ID}, "/"),
			Voice: shown.Flags&voiceFlag != 0,
		})
	}
	return files
}

func (m member) name(u user) string { return cmp.Or(m.Nick, u.Full, u.Name) }

// nameMentions replaces the ids of mentioned people in text by their names.
func nameMentions(text string, mentions []user) string {
	for _, u := range mentions {
		name := "@" + cmp.Or(u.Full, u.Name)
		text = strings.NewReplacer("<@"+u.ID+">", name, "<@!"+u.ID+">", name).Replace(text)
	}
	return text
}
