package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/channels/discord/discordtest"
	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
	"parley/tools/network/networktest"
)

const (
	asker    = 7002 // may talk, and is no owner
	reader   = 7003 // may talk, too, and reads along
	stranger = 9999
)

// curious is a model that asks which colour, and says what it was told.
func curious(ctx context.Context, r llmtest.Request) llmtest.Reply {
	switch rs := results(r); {
	case len(rs) > 0:
		return llmtest.Reply{Text: "I know: " + rs[len(rs)-1]}
	case strings.Contains(spokenLast(r), "paint it"):
		return llmtest.Reply{Calls: call("ask_user", `{"question": "Which colour?", "choices": ["Red", "Blue"]}`)}
	}
	return echo(ctx, r)
}

// allowing restricts a channel to the people of these tests.
func (w *testGateway) allowing(channel string) {
	w.channels[channel].(map[string]any)["allow"] = []string{fmt.Sprint(asker), fmt.Sprint(reader)}
}

// knows counts the answers to the question among texts, and says what they are.
func knows(t *testing.T, texts []string) (n int) {
	t.Helper()
	for _, text := range texts {
		if strings.HasPrefix(text, "I know: ") {
			n++
			if !strings.Contains(text, `chose "Blue"`) {
				t.Errorf("the model was told %q", text)
			}
		}
	}
	return n
}

// answered reports whether one of texts is the whole answer to the question, and
// not the beginning of it that a live view shows.
func answered(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return strings.HasPrefix(text, "I know: ") && strings.Contains(text, `chose "Blue"`)
	})
}

// TestQuestionOnTelegram: a question waits for whom it was put to, over a
// crash; the button that was pressed meanwhile counts, and counts once.
func TestQuestionOnTelegram(t *testing.T) {
	t.Parallel()
	const group = -1007
	w := newTestGateway(t, curious)
	w.allowing("telegram")
	w.start()
	w.tg.Say(group, "@parleybot paint it", telegramtest.As(asker, "Ada"))
	var question telegramtest.Message
	w.shows(group, "the buttons", func(m telegramtest.Message) bool {
		question = m
		return m.FromBot() && len(m.Buttons) > 0
	})
	press := func(who int64, choice int) string {
		return w.tg.PressData(group, question.ID, question.Buttons[0][choice].Data, telegramtest.As(who, "Somebody"))
	}
	released := func(press string) {
		t.Helper()
		w.sees("the button let go", func(v telegramtest.View) bool { return v.Released(press) })
	}
	released(press(reader, 0))
	released(press(stranger, 0))
	w.tg.PressData(group, question.ID, "q:../../x:1", telegramtest.As(asker, "Ada"))
	w.tg.PressData(group, question.ID, strings.Replace(question.Buttons[0][0].Data, ":0", ":7", 1), telegramtest.As(asker, "Ada"))
	w.kill()
	first := press(asker, 1)
	press(asker, 0)
	w.start()
	released(first)
	w.told(group, "the answer", func(texts []string) bool { return answered(texts...) })
	released(press(asker, 0))
	w.shows(group, "no more buttons", func(m telegramtest.Message) bool { return m.ID == question.ID && len(m.Buttons) == 0 })
	w.tg.Say(group, "@parleybot go on", telegramtest.As(asker, "Ada"))
	texts := w.told(group, "the next answer", func(texts []string) bool { return strings.HasPrefix(texts[len(texts)-1], "heard") })
	if n := knows(t, texts); n != 1 || len(texts) > 4 { // the question may be there twice (P9)
		t.Errorf("%d answers: %q", n, texts)
	}
}

// shows waits until a chat shows a message for which ok is true.
func (w *testGateway) shows(chat int64, what string, ok func(telegramtest.Message) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitTime)
	defer cancel()
	err := w.tg.WaitChat(ctx, chat, func(ms []telegramtest.Message) bool {
		for _, m := range ms {
			m.Text = words(m.Text)
			if ok(m) {
				return true
			}
		}
		return false
	})
	if err != nil {
		w.t.Fatalf("chat %d: waiting for %s: %v; it shows %+v", chat, what, err, w.tg.Chat(chat))
	}
}

// TestQuestionOnDiscord is the same there, where a press fails while the bot is
// dead, and is made again.
func TestQuestionOnDiscord(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, curious)
	dc := w.discord(discordtest.Config{})
	w.allowing("discord")
	w.start()
	w.online()
	room := dc.Channel("900")
	dc.Say(room, fmt.Sprint(asker), "Ada", "<@"+dc.Bot().ID+"> paint it")
	var question discordtest.Message
	w.shown(room, "the buttons", func(m discordtest.Message) bool {
		question = m
		return len(m.Buttons) == 2
	})
	press := func(who, choice int) string {
		return dc.Press(room, fmt.Sprint(who), question.ID, question.Buttons[choice].ID)
	}
	over := func(press string, late bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), waitTime)
		defer cancel()
		var i discordtest.Interaction
		err := dc.Wait(ctx, func(v discordtest.View) bool {
			i = v.Interaction(press)
			return i.Acked || i.Late
		})
		if err != nil || i.Late != late {
			t.Fatalf("the press is late: %v, want %v; %v", i.Late, late, err)
		}
	}
	over(press(reader, 0), false)
	over(press(stranger, 0), false)
	w.kill()
	over(press(asker, 1), true)
	w.start()
	w.online()
	over(press(asker, 1), false)
	dc.Replay()
	over(press(asker, 0), false)
	w.shown(room, "the answer", func(m discordtest.Message) bool { return m.FromBot() && answered(m.Text) })
	w.shown(room, "no more buttons", func(m discordtest.Message) bool { return m.ID == question.ID && len(m.Buttons) == 0 })
	dc.Say(room, fmt.Sprint(asker), "Ada", "<@"+dc.Bot().ID+"> go on")
	w.shown(room, "the next answer", func(m discordtest.Message) bool { return m.FromBot() && strings.HasPrefix(m.Text, "heard") })
	var texts []string
	for _, m := range dc.Messages(room) {
		if m.FromBot() {
			texts = append(texts, words(m.Text))
		}
	}
	if n := knows(t, texts); n != 1 || len(texts) != 3 {
		t.Errorf("%d answers: %q", n, texts)
	}
}

// shown waits until a channel of Discord shows a message for which ok is true.
func (w *testGateway) shown(channel, what string, ok func(discordtest.Message) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitTime)
	defer cancel()
	err := w.dc.WaitChat(ctx, channel, func(ms []discordtest.Message) bool {
		for _, m := range ms {
			m.Text = words(m.Text)
			if ok(m) {
				return true
			}
		}
		return false
	})
	if err != nil {
		w.t.Fatalf("channel %s: waiting for %s: %v; it shows %+v", channel, what, err, w.dc.Messages(channel))
	}
}

// TestQuestionOnTheWeb is the same on the page, which sends a press until it is taken.
func TestQuestionOnTheWeb(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, curious)
	w.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	w.start()
	v := w.visit()
	v.say("first", "message-1", "paint it")
	lines := v.reads("first", "the question", func(ls []line) bool { return ls[len(ls)-1].Ask != nil })
	ask := lines[len(lines)-1].Ask
	press := func(v *visitor, id, question string, choice int) int {
		status, _ := v.do("POST", "/c/first/answer", map[string]any{"id": id, "question": question, "choice": choice})
		return status
	}
	other := w.invite("anna")
	if status := press(other, "press-of-anna", ask.ID, 0); status != http.StatusNotFound {
		t.Errorf("another person's press: %d", status)
	}
	if status := press(&visitor{t: t, base: v.base}, "press-of-nobody", ask.ID, 0); status != http.StatusUnauthorized {
		t.Errorf("a stranger's press: %d", status)
	}
	for question, choice := range map[string]int{ask.ID: 2, "q": 0, "../x": 0} {
		if status := press(v, "press-odd", question, choice); status != http.StatusNotFound {
			t.Errorf("the press of button %d of %q: %d", choice, question, status)
		}
	}
	w.kill()
	if status := press(v, "press-12345678", ask.ID, 1); status != 0 {
		t.Fatalf("a dead house answers: %d", status)
	}
	w.start()
	for _, choice := range []int{1, 1, 0} {
		id := fmt.Sprint("press-12345678", choice)
		for press(v, id, ask.ID, choice) != http.StatusAccepted && t.Context().Err() == nil { // the house is not open yet
			soon(t.Context())
		}
	}
	v.reads("first", "the answer", func(ls []line) bool { return answered(spokenBy(ls, "parley")...) })
	v.say("first", "message-2", "go on")
	lines = v.reads("first", "the next answer", func(ls []line) bool { return strings.HasPrefix(ls[len(ls)-1].Text, "heard") })
	texts := spokenBy(lines, "parley")
	if n := knows(t, texts); n != 1 || len(texts) != 3 {
		t.Errorf("%d answers: %q", n, texts)
	}
}
