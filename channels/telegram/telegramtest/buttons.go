package telegramtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Button is below a message of the bot.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// buttons returns those of p, row by row.
func buttons(p params) ([][]Button, *apiError) {
	if p["reply_markup"] == "" {
		return nil, nil
	}
	var markup struct {
		Rows [][]Button `json:"inline_keyboard"`
	}
	if err := json.Unmarshal([]byte(p["reply_markup"]), &markup); err != nil || markup.Rows == nil {
		return nil, bad("object expected as reply markup")
	}
	n := 0
	for _, row := range markup.Rows {
		n += len(row)
		for _, b := range row {
			switch {
			case strings.TrimSpace(b.Text) == "":
				return nil, bad("inline keyboard button text must be non-empty")
			case len(b.Data) < 1 || len(b.Data) > 64:
				return nil, bad("BUTTON_DATA_INVALID")
			}
		}
		if len(row) > 8 {
			return nil, bad("too many buttons in a row")
		}
	}
	if n > 100 {
		return nil, bad("REPLY_MARKUP_TOO_LONG")
	}
	return markup.Rows, nil
}

// queryTime is how long the press of a button can be answered.
const queryTime = 15 * time.Second

// Press lets a person press button n of a message, counted from 0, and returns
// the id of the press.
func (s *Server) Press(chat int64, message, n int, opts ...Option) string {
	var b Button
	s.Look(func(v View) {
		b = slices.Concat(v.s.room(chat).find(message).Buttons...)[n]
	})
	return s.PressData(chat, message, b.Data, opts...)
}

// PressData is Press by a client that sends any data. The message may be gone.
func (s *Server) PressData(chat int64, message int, data string, opts ...Option) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := newDraft(chat, opts)
	id := fmt.Sprint(7_000_000_000 + len(s.presses))
	s.presses[id] = time.Now()
	r := s.room(chat)
	msg := map[string]any{"message_id": message, "chat": r.json(), "date": 0} // as of one that is gone
	if m := r.find(message); m != nil {
		msg = s.json(r, *m)
	}
	s.tellBot("callback_query", r.id, message, map[string]any{
		"id": id, "from": by.from, "message": msg, "chat_instance": "1", "data": data,
	})
	return id
}

func (s *Server) answerCallbackQuery(p params) (any, *apiError) {
	pressed, ok := s.presses[p["callback_query_id"]]
	if !ok || time.Since(pressed) > queryTime {
		return nil, bad("query is too old and response timeout expired or query ID is invalid")
	}
	s.presses[p["callback_query_id"]] = time.Time{} // once
	s.notify()
	return true, nil
}

// Released reports whether the bot answered the press, so that the button does not
// look pressed any more.
func (v View) Released(press string) bool { return v.s.presses[press].IsZero() }

// reactions are those that a bot may set.
var reactions = strings.Fields("❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 " +
	"😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡")

// NoReactions switches reactions off in a chat.
func (s *Server) NoReactions(chat int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room(chat).noReactions = true
}

func (s *Server) setMessageReaction(p params) (any, *apiError) {
	r, failure := s.open(p)
	if failure != nil {
		return nil, failure
	}
	var set []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	if p["reaction"] != "" && json.Unmarshal([]byte(p["reaction"]), &set) != nil {
		return nil, bad("can't parse reaction types JSON object")
	}
	m := r.find(int(p.int("message_id")))
	switch {
	case m == nil:
		return nil, bad("message to react not found")
	case len(set) > 1:
		return nil, bad("REACTIONS_TOO_MANY")
	case len(set) == 1 && (r.noReactions || set[0].Type != "emoji" || !slices.Contains(reactions, set[0].Emoji)):
		return nil, bad("REACTION_INVALID")
	}
	emoji := ""
	if len(set) == 1 {
		emoji = set[0].Emoji
	}
	m.Reactions = append(m.Reactions, emoji)
	r.notify()
	s.notify()
	return true, nil
}
