package telegramtest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/timetest"
)

type reply struct {
	OK          bool            `json:"ok"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Result      json.RawMessage `json:"result"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		Migrate    int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// call does one request. The arguments are pairs.
// post sends form, as http.Client.PostForm does, until ctx ends.
func post(ctx context.Context, client *http.Client, url string, form url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return client.Do(req)
}

func call(t *testing.T, s *telegramtest.Server, client *http.Client, method string, args ...string) (r reply) {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(args); i += 2 {
		form.Set(args[i], args[i+1])
	}
	resp, err := post(t.Context(), client, s.URL+"/bot"+s.Token()+"/"+method, form)
	if err != nil {
		t.Error(err)
		return r
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(body, &r); err != nil {
		t.Errorf("%v: %s", err, body)
	}
	return r
}

func ids(t *testing.T, r reply) (ids []int64) {
	t.Helper()
	var us []struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(r.Result, &us); err != nil {
		t.Errorf("%v in %+v", err, r)
	}
	for _, u := range us {
		ids = append(ids, u.ID)
	}
	return ids
}

func inBubble(t *testing.T, cfg telegramtest.Config, f func(t *testing.T, s *telegramtest.Server, call func(method string, args ...string) reply)) {
	timetest.Test(t, func(t *testing.T) {
		s := telegramtest.NewInMemory(cfg)
		defer s.Close()
		f(t, s, func(method string, args ...string) reply { t.Helper(); return call(t, s, s.Client(), method, args...) })
	})
}

func TestOffsetConfirms(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		for range 150 {
			s.Say(7, "x")
		}
		first := ids(t, call("getUpdates", "timeout", "0"))
		again := ids(t, call("getUpdates", "timeout", "0", "limit", "3"))
		if len(first) != 100 || len(again) != 3 || first[0] != again[0] || len(s.Confirmed()) != 0 {
			t.Errorf("%d, then %v, %d confirmed", len(first), again, len(s.Confirmed()))
		}
		rest := ids(t, call("getUpdates", "timeout", "0", "offset", "1100"))
		if len(rest) != 50 || rest[0] != 1100 || len(s.Confirmed()) != 100 {
			t.Errorf("then %v, %d confirmed", rest, len(s.Confirmed()))
		}
	})
}

func TestLongPoll(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		began := time.Now()
		if got := ids(t, call("getUpdates", "timeout", "50")); len(got) != 0 || time.Since(began) != 50*time.Second {
			t.Errorf("%v after %v", got, time.Since(began))
		}
		time.AfterFunc(20*time.Second, func() { s.Say(7, "x") })
		began = time.Now()
		if got := ids(t, call("getUpdates", "timeout", "50")); len(got) != 1 || time.Since(began) != 20*time.Second {
			t.Errorf("%v after %v", got, time.Since(began))
		}
	})
}

func TestSecondPollEndsFirst(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		var all sync.WaitGroup
		var first reply
		all.Go(func() { first = call("getUpdates", "timeout", "50") })
		synctest.Wait()
		if r := call("getUpdates", "timeout", "1"); !r.OK {
			t.Errorf("the second: %+v", r)
		}
		all.Wait()
		if first.Code != 409 || !strings.Contains(first.Description, "terminated by other getUpdates") {
			t.Errorf("the first: %+v", first)
		}
		call("setWebhook", "url", "http://127.0.0.1:1/")
		if r := call("getUpdates"); r.Code != 409 || !strings.Contains(r.Description, "webhook is active") {
			t.Errorf("with a webhook: %+v", r)
		}
		call("deleteWebhook")
		if r := call("getUpdates"); !r.OK {
			t.Errorf("without: %+v", r)
		}
	})
}

// An offset from before the ids began anew confirms nothing.
func TestRenumber(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		s.Say(7, "x")
		s.Renumber(3)
		call("getUpdates", "offset", "1001", "timeout", "0")
		s.Say(7, "y")
		for range 2 {
			if got := ids(t, call("getUpdates", "offset", "1001")); len(got) != 2 {
				t.Errorf("told %v", got)
			}
		}
	})
}

func TestAllowedUpdates(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		call("getUpdates", "allowed_updates", `["message"]`)
		id := s.Say(7, "x")
		s.Edit(7, id, "y")
		if got := ids(t, call("getUpdates")); len(got) != 1 {
			t.Errorf("told %v", got)
		}
	})
}

func TestRefusals(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		s.Say(7, "hello")
		call("sendMessage", "chat_id", "7", "text", "mine")
		s.Say(8, "hello")
		s.Block(8)
		s.Say(-5, "hello")
		s.Migrate(-5, -1005, true)
		s.Say(-1006, "hello", telegramtest.InTopic(3))
		long := strings.Repeat("x", 4097)
		for _, tt := range []struct {
			want, method string
			args         []string
		}{
			{"", "sendMessage", []string{"chat_id", "7", "text", strings.Repeat("😀", 2048)}},
			{"Bad Request: message is too long", "sendMessage", []string{"chat_id", "7", "text", strings.Repeat("😀", 2048) + "x"}},
			{"Bad Request: message is too long", "sendMessage", []string{"chat_id", "7", "text", long}},
			{"", "sendMessage", []string{"chat_id", "7", "text", "<b>" + long[:4096] + "</b>", "parse_mode", "HTML"}},
			{"Bad Request: message text is empty", "sendMessage", []string{"chat_id", "7", "text", " \n"}},
			{"Bad Request: message text is empty", "sendMessage", []string{"chat_id", "7", "text", "<b> </b>", "parse_mode", "HTML"}},
			{"Bad Request: can't parse entities", "sendMessage", []string{"chat_id", "7", "text", "<b>x", "parse_mode", "HTML"}},
			{"Bad Request: chat not found", "sendMessage", []string{"chat_id", "9", "text", "x"}},
			{"Bad Request: chat_id is empty", "sendMessage", []string{"text", "x"}},
			{"Forbidden: bot was blocked by the user", "sendMessage", []string{"chat_id", "8", "text", "x"}},
			{"Bad Request: group chat was upgraded to a supergroup chat", "sendMessage", []string{"chat_id", "-5", "text", "x"}},
			{"", "sendMessage", []string{"chat_id", "-1006", "text", "x", "message_thread_id", "3"}},
			{"Bad Request: message thread not found", "sendMessage", []string{"chat_id", "-1006", "text", "x", "message_thread_id", "1"}},
			{"Bad Request: message thread not found", "sendChatAction", []string{"chat_id", "-1006", "action", "typing", "message_thread_id", "4"}},
			{"Bad Request: message to be replied not found", "sendMessage", []string{"chat_id", "7", "text", "x", "reply_parameters", `{"message_id":99}`}},
			{"", "sendMessage", []string{"chat_id", "7", "text", "x", "reply_parameters", `{"message_id":99,"allow_sending_without_reply":true}`}},
			{"Bad Request: message to edit not found", "editMessageText", []string{"chat_id", "7", "message_id", "99", "text", "x"}},
			{"Bad Request: message can't be edited", "editMessageText", []string{"chat_id", "7", "message_id", "1", "text", "x"}},
			{"Bad Request: message is not modified", "editMessageText", []string{"chat_id", "7", "message_id", "2", "text", "mine"}},
			{"", "editMessageText", []string{"chat_id", "7", "message_id", "2", "text", "<b>mine</b>", "parse_mode", "HTML"}},
			{"Bad Request: message can't be deleted", "deleteMessage", []string{"chat_id", "7", "message_id", "1"}},
			{"", "deleteMessage", []string{"chat_id", "7", "message_id", "2"}},
			{"Bad Request: message to delete not found", "deleteMessage", []string{"chat_id", "7", "message_id", "2"}},
			{"Bad Request: BOT_COMMAND_INVALID", "setMyCommands", []string{"commands", `[{"command":"New","description":"x"}]`}},
			{"Not Found", "sendPigeon", nil},
		} {
			r := call(tt.method, tt.args...)
			if r.OK != (tt.want == "") || !strings.HasPrefix(r.Description, tt.want) {
				t.Errorf("%s %.80q: %+v, want %q", tt.method, tt.args, r, tt.want)
			}
			if strings.Contains(tt.want, "upgraded") && r.Parameters.Migrate != -1005 {
				t.Errorf("migration says %+v", r.Parameters)
			}
		}
		resp, err := post(t.Context(), s.Client(), s.URL+"/bot1:wrong/getMe", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 401 {
			t.Errorf("a wrong token: %s", resp.Status)
		}
	})
}

func TestLimits(t *testing.T) {
	inBubble(t, telegramtest.Config{Limits: true}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		s.Say(-5, "hello")
		for i := range 21 {
			r := call("sendMessage", "chat_id", "-5", "text", "x")
			if r.OK != (i < 20) {
				t.Errorf("message %d: %+v", i, r)
			}
			if !r.OK && r.Parameters.RetryAfter != 60-20 {
				t.Errorf("retry after %d", r.Parameters.RetryAfter)
			}
			timetest.Sleep(time.Second)
		}
		timetest.Sleep(39 * time.Second)
		if r := call("sendMessage", "chat_id", "-5", "text", "x"); !r.OK {
			t.Errorf("after waiting: %+v", r)
		}
	})
}

func TestFaultsAndEvents(t *testing.T) {
	s := telegramtest.NewServer(telegramtest.Config{})
	defer s.Close()
	s.Say(7, "hello")
	s.Say(8, "hello")
	var events []telegramtest.Event
	s.Watch(func(e telegramtest.Event) { events = append(events, e) })
	s.Fail("sendMessage", telegramtest.Fault{Chat: 8, DropBefore: true})
	s.Fail("sendMessage", telegramtest.Fault{DropAfter: true})
	s.Fail("sendMessage", telegramtest.Fault{Code: 429, Text: "Too Many Requests", RetryAfter: 3})
	send := func(chat string) error {
		resp, err := post(t.Context(), http.DefaultClient, s.URL+"/bot"+s.Token()+"/sendMessage", url.Values{"chat_id": {chat}, "text": {"x"}})
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if send("7") == nil || len(s.Chat(7)) != 2 {
		t.Error("dropped after: it was not done, or there was an answer")
	}
	if send("8") == nil || len(s.Chat(8)) != 1 {
		t.Error("dropped before: it was done, or there was an answer")
	}
	if r := call(t, s, http.DefaultClient, "sendMessage", "chat_id", "7", "text", "x"); r.Code != 429 || r.Parameters.RetryAfter != 3 {
		t.Errorf("%+v", r)
	}
	if r := call(t, s, http.DefaultClient, "sendMessage", "chat_id", "8", "text", "x"); !r.OK {
		t.Errorf("%+v", r)
	}
	if n := s.Count("sendMessage"); n != 4 || len(events) != 6 {
		t.Errorf("%d requests, events %+v", n, events)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if s.Wait(ctx, func(telegramtest.View) bool { return false }) == nil {
		t.Error("waited for ever")
	}
	if err := s.WaitChat(t.Context(), 8, func(ms []telegramtest.Message) bool { return ms[len(ms)-1].FromBot() }); err != nil {
		t.Error(err)
	}
}

// One counter numbers the messages of all private chats and basic groups; each
// supergroup has its own.
func TestNumbers(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		own := s.Say(-1006, "hello")
		all := []int{s.Say(7, "a"), s.Say(8, "b"), s.Say(-5, "c")}
		call("sendMessage", "chat_id", "7", "text", "d")
		all = append(all, s.Chat(7)[1].ID)
		s.SkipMessages(-1006, 5)
		s.SkipMessages(7, 5)
		if all = append(all, s.Say(8, "e")); !slices.Equal(all, []int{1, 2, 3, 4, 10}) {
			t.Errorf("numbered %v", all)
		}
		if next := s.Say(-1006, "hello"); own != 1 || next != 7 {
			t.Errorf("in the supergroup: %d, then %d", own, next)
		}
	})
}

// What editMessageReplyMarkup says of a number tells what stands there.
func TestReplyMarkup(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		s.Say(7, "theirs")
		s.Say(8, "elsewhere")
		call("sendMessage", "chat_id", "7", "text", "mine")
		call("sendMessage", "chat_id", "7", "text", "which?", "reply_markup", button("yes", "1"))
		for _, tt := range []struct{ message, markup, want string }{
			{"1", "", "Bad Request: message can't be edited"},
			{"2", "", "Bad Request: message to edit not found"},
			{"3", "", "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"},
			{"4", button("yes", "1"), "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"},
			{"5", "", "Bad Request: message to edit not found"},
			{"4", "", ""},
		} {
			if r := call("editMessageReplyMarkup", "chat_id", "7", "message_id", tt.message, "reply_markup", tt.markup); r.Description != tt.want {
				t.Errorf("%s: %+v, want %q", tt.message, r, tt.want)
			}
		}
		if len(s.Chat(7)[2].Buttons) > 0 {
			t.Error("the buttons are still there")
		}
	})
}
