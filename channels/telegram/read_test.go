package telegram_test

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/timetest"
)

type fields = map[string]any

const group = -1005

func with(f fields) telegramtest.Option { return telegramtest.With(f) }

// R-S8: every sender is named by an id that nobody else can take over. Those who
// write for a group or a channel have its id.
func TestRS8Senders(t *testing.T) {
	anonymous := telegramtest.User{ID: 1087968824, IsBot: true, FirstName: "Group", Username: "GroupAnonymousBot"}
	owner := telegramtest.User{ID: 1, FirstName: "Owner"}
	for _, tt := range []struct {
		name, want string // id; empty if nothing is delivered
		chat       int64
		opts       []telegramtest.Option
	}{
		{"a person", "7", 7, nil},
		{"a person with a name like the owner's id", "7", 7, []telegramtest.Option{telegramtest.From(telegramtest.User{ID: 7, FirstName: "1", Username: "1"})}},
		{"a member of a group", "8", group, []telegramtest.Option{telegramtest.As(8, "Eve")}},
		{"a member in a topic", "8", group, []telegramtest.Option{telegramtest.As(8, "Eve"), telegramtest.InTopic(3)}},
		{"an anonymous admin", "-1005", group, []telegramtest.Option{telegramtest.From(anonymous), with(fields{"sender_chat": fields{"id": group, "title": "G"}})}},
		{"on behalf of a channel", "-1009", group, []telegramtest.Option{telegramtest.From(telegramtest.User{ID: 136817688, IsBot: true}), with(fields{"sender_chat": fields{"id": -1009, "title": "C"}})}},
		{"on behalf of a channel, with the owner as user", "-1009", group, []telegramtest.Option{telegramtest.From(owner), with(fields{"sender_chat": fields{"id": -1009, "title": "C"}})}},
		{"a channel's post in its group", "-1009", group, []telegramtest.Option{telegramtest.From(telegramtest.User{ID: 777000, FirstName: "Telegram"}), with(fields{"is_automatic_forward": true, "sender_chat": fields{"id": -1009, "title": "C"}})}},
		{"a forward of the owner's words", "8", 8, []telegramtest.Option{with(fields{"forward_origin": fields{"type": "user", "sender_user": owner}})}},
		{"a reply to the owner", "8", 8, []telegramtest.Option{with(fields{"reply_to_message": fields{"message_id": 1, "from": owner, "chat": fields{"id": 8}, "text": "yes"}})}},
		{"by way of an inline bot", "8", 8, []telegramtest.Option{with(fields{"via_bot": anonymous})}},
		{"another bot", "", group, []telegramtest.Option{telegramtest.From(telegramtest.User{ID: 9, IsBot: true})}},
		{"ourselves", "", 7, []telegramtest.Option{telegramtest.From(telegramtest.User{ID: 4242, IsBot: true})}},
		{"nobody", "", group, []telegramtest.Option{with(fields{"from": nil})}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Groups = "all" }, func(t *testing.T, h *harness) {
				id := h.Say(tt.chat, "hello", tt.opts...)
				if tt.want != "" {
					h.Edit(tt.chat, id, "hello again")
				}
				h.run(t)
				h.deliveredTexts()
				for _, m := range h.delivered {
					edited := m.Edits != "" && len(tt.opts) > 0 // the fake's edits lack the options' fields
					if m.From.ID != tt.want && !edited || m.From.Role != chat.Unknown {
						t.Errorf("delivered from %+v, want %q", m.From, tt.want)
					}
				}
				if want := tt.want != ""; len(h.delivered) > 0 != want {
					t.Errorf("delivered %v", h.delivered)
				}
			})
		})
	}
}

// All kinds of content become text.
func TestContents(t *testing.T) {
	place := fields{"latitude": 52.52, "longitude": 13.4}
	for want, f := range map[string]fields{
		"[image/jpeg]":                                  {"photo": []fields{{"file_id": "x"}}},
		"[voice 12 s]":                                  {"voice": fields{"duration": 12}},
		"[video note 3 s]":                              {"video_note": fields{"duration": 3}},
		"[video clip.mp4 4 s]":                          {"video": fields{"duration": 4, "file_name": "clip.mp4"}},
		"[audio Song Band 200 s]":                       {"audio": fields{"duration": 200, "title": "Song", "performer": "Band"}},
		"[document report.pdf]":                         {"document": fields{"file_name": "report.pdf"}},
		"[animation a.gif]":                             {"animation": fields{"file_name": "a.gif"}, "document": fields{"file_name": "a.gif"}},
		"[sticker 😀]":                                   {"sticker": fields{"emoji": "😀"}},
		"[dice 🎲 4]":                                    {"dice": fields{"emoji": "🎲", "value": 4}},
		"[location 52.52 13.4]":                         {"location": place},
		"[venue Bar Road 1]":                            {"location": place, "venue": fields{"location": place, "title": "Bar", "address": "Road 1"}},
		"[contact Ada Byron +44123]":                    {"contact": fields{"first_name": "Ada", "last_name": "Byron", "phone_number": "+44123"}},
		"[poll Tea?]":                                   {"poll": fields{"question": "Tea?", "options": []fields{{"text": "yes"}, {"text": "no"}}}},
		"[story]":                                       {"story": fields{"id": 1}},
		"[game Chess]":                                  {"game": fields{"title": "Chess"}},
		"look\n[image/jpeg]":                            {"photo": []fields{{"file_id": "x"}}, "caption": "look"},
		"[forwarded from Ada Byron]\nhello":             {"text": "hello", "forward_origin": fields{"type": "user", "sender_user": fields{"id": 5, "first_name": "Ada", "last_name": "Byron"}}},
		"[forwarded from Hidden]\nhello":                {"text": "hello", "forward_origin": fields{"type": "hidden_user", "sender_user_name": "Hidden"}},
		"[forwarded from News]\n/new":                   {"text": "/new", "forward_origin": fields{"type": "channel", "chat": fields{"id": -1009, "title": "News"}}},
		"[forwarded from A group]\n[photo][image/jpeg]": {"photo": []fields{{"file_id": "x"}}, "forward_origin": fields{"type": "chat", "sender_chat": fields{"id": -1009, "title": "A group"}}},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				h.Say(7, "", with(f))
				h.run(t)
				h.wantDelivered(t, want)
			})
		})
	}
}

// Service messages are ignored.
func TestServiceMessagesAreIgnored(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Groups = "all" }, func(t *testing.T, h *harness) {
		for _, f := range []fields{
			{"new_chat_members": []fields{{"id": 4242, "is_bot": true}}}, {"left_chat_member": fields{"id": 8}}, {"new_chat_title": "x"},
			{"group_chat_created": true}, {"pinned_message": fields{"message_id": 1, "date": 0, "chat": fields{"id": group}}},
			{"forum_topic_created": fields{"name": "x"}}, {"message_auto_delete_timer_changed": fields{}}, {"video_chat_started": fields{}},
		} {
			h.Say(group, "", with(f))
		}
		h.run(t)
		h.wantDelivered(t)
		if h.confirmed() != 8 {
			t.Error("not confirmed")
		}
	})
}

// In groups only messages to the bot are delivered, and without its name.
func TestGroups(t *testing.T) {
	us := telegramtest.User{ID: 4242, IsBot: true, FirstName: "Parley"}
	toUs := fields{"reply_to_message": fields{"message_id": 1, "from": us, "chat": fields{"id": group}, "text": "said before"}}
	toOther := fields{"reply_to_message": fields{"message_id": 1, "from": fields{"id": 9}, "chat": fields{"id": group}, "text": "x"}}
	opened := fields{"message_thread_id": 3, "is_topic_message": true,
		"reply_to_message": fields{"message_id": 3, "from": us, "chat": fields{"id": group}, "forum_topic_created": fields{"name": "x"}}}
	const nothing = "\x00"
	for _, tt := range []struct {
		text         string
		more         fields
		mention, all string // what is delivered, if anything
	}{
		{"hello", nil, nothing, "hello"},
		{"@parleybot hello", nil, "hello", "hello"},
		{"  @ParleyBot, hello", nil, "hello", "hello"},
		{"hello @parleybot!", nil, "hello @parleybot!", "hello @parleybot!"},
		{"(@parleybot)", nil, "(@parleybot)", "(@parleybot)"},
		{"@parleybot", nil, "@parleybot", "@parleybot"},
		{"Привет @parleybot", nil, "Привет @parleybot", "Привет @parleybot"},
		{"@parleybot2 hello", nil, nothing, "@parleybot2 hello"},
		{"me@parleybot.com", nil, nothing, "me@parleybot.com"},
		{"я@parleybot", nil, nothing, "я@parleybot"},
		{"/new", nil, "/new", "/new"},
		{"/new@parleybot now", nil, "/new now", "/new now"},
		{"/new@PARLEYBOT", nil, "/new", "/new"},
		{"@parleybot /new", nil, "/new", "/new"},
		{"/new@otherbot", nil, nothing, nothing},
		{"/new@otherbot", toUs, nothing, nothing},
		{"why?", toUs, "why?", "why?"},
		{"why?", toOther, nothing, "why?"},
		{"in the topic we opened", opened, nothing, "in the topic we opened"},
		{"", fields{"photo": []fields{{"file_id": "x"}}}, nothing, "[image/jpeg]"},
		{"", fields{"photo": []fields{{"file_id": "x"}}, "caption": "@parleybot what is it?"}, "what is it?\n[image/jpeg]", "what is it?\n[image/jpeg]"},
	} {
		for mode, want := range map[string]string{"mention": tt.mention, "all": tt.all, "none": nothing} {
			t.Run(mode+" "+tt.text, func(t *testing.T) {
				inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Groups = mode }, func(t *testing.T, h *harness) {
					h.Say(group, tt.text, with(tt.more))
					h.run(t)
					if want == nothing {
						h.wantDelivered(t)
					} else {
						h.wantDelivered(t, want)
					}
				})
			})
		}
	}
}

// Private chats are read in every mode; a command may name the bot there, too.
func TestPrivate(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Groups = "none" }, func(t *testing.T, h *harness) {
		h.Say(7, "/start")
		h.Say(7, "/new@parleybot x")
		h.Say(7, "@parleybot hello")
		h.run(t)
		h.wantDelivered(t, "/start", "/new x", "@parleybot hello")
	})
}

// All parts of a message are delivered. Only real topics are threads.
func TestMessage(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Name, c.Groups = "telegram:work", "all" }, func(t *testing.T, h *harness) {
		now := time.Now()
		first := h.Say(7, "hello")
		h.Say(7, "and?", telegramtest.ReplyTo(first))
		h.Say(group, "in a topic", telegramtest.As(8, "Ada"), telegramtest.InTopic(3))
		h.Say(group, "a reply is no topic", telegramtest.As(8, "Ada"), with(fields{"message_thread_id": 99}))
		if _, err := h.ch.Send(t.Context(), to("7", "the part and the rest")); err != nil {
			t.Fatal(err)
		}
		h.Say(7, "part", telegramtest.Quoting(3, "the part"))
		h.Say(7, "elsewhere", with(fields{"external_reply": fields{"origin": fields{"type": "channel", "chat": fields{"id": -1009, "title": "News"}}, "message_id": 5, "photo": []fields{{}}}}))
		h.run(t)
		synctest.Wait()
		timetest.Sleep(time.Minute)
		h.Edit(7, first, "hello!")
		h.deliveredTexts()
		private := chat.Message{Account: "4242", At: chat.Address{Channel: "telegram:work", Chat: "7"}, From: chat.Sender{ID: "7", Name: "Person 7"}, Time: now}
		public := private
		public.At, public.From, public.Group = chat.Address{Channel: "telegram:work", Chat: "-1005"}, chat.Sender{ID: "8", Name: "Ada"}, true
		want := map[string]func() chat.Message{
			"hello": func() chat.Message { m := private; m.ID = "1"; return m },
			"and?": func() chat.Message {
				m := private
				m.ID, m.Quote = "2", &chat.Quote{ID: "1", From: "Person 7", Text: "hello"}
				return m
			},
			"in a topic":          func() chat.Message { m := public; m.ID, m.At.Thread = "1", "3"; return m },
			"a reply is no topic": func() chat.Message { m := public; m.ID = "2"; return m },
			"part": func() chat.Message {
				m := private
				m.ID, m.Quote = "4", &chat.Quote{ID: "3", From: "you", Text: "the part"}
				return m
			},
			"elsewhere": func() chat.Message {
				m := private
				m.ID, m.Quote = "5", &chat.Quote{From: "News", Text: "[photo]"}
				return m
			},
			"hello!": func() chat.Message {
				m := private
				m.Time = now.Add(time.Minute)
				m.ID, m.Edits = "1e1006", "1"
				return m
			},
		}
		if len(h.delivered) != len(want) {
			t.Errorf("delivered %d of %d", len(h.delivered), len(want))
		}
		for _, m := range h.delivered {
			w := want[m.Text]()
			w.Text = m.Text
			if !m.Time.Equal(w.Time) {
				t.Errorf("%q was said at %v, want %v", m.Text, m.Time, w.Time)
			}
			m.Time, w.Time = time.Time{}, time.Time{}
			if !reflect.DeepEqual(m, w) {
				t.Errorf("delivered %+v\nwant  %+v", m, w)
			}
		}
	})
}

// A live location that moves is not delivered again and again.
func TestEditsWithoutWordsAreIgnored(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Push(`"edited_message":{"message_id":1,"date":1,"edit_date":2,"chat":{"id":7,"type":"private"},"from":{"id":7},"location":{"latitude":1,"longitude":2,"live_period":900}}`)
		h.run(t)
		h.wantDelivered(t)
	})
}
