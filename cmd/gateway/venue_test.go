package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/telegram/telegramtest"
	"parley/tools/network/networktest"
)

// A venue is a network as people see it who talk there, each in a chat of
// their own, numbered from 0, while the gateway dies and comes back.
type venue interface {
	// open makes that many chats. The gateway runs.
	open(chats int)
	// say says text, which the gateway hears as soon as it lives.
	say(chat int, text string)
	// wait returns when ok is true of what the agent has said in the chat, or
	// with what that was and an error when ctx ends.
	wait(ctx context.Context, chat int, ok func(texts []string) bool) ([]string, error)
	// check looks for faults of the network's own when all is over.
	check()
}

// venues are all of them. Each calls reach whenever something of the gateway
// can be seen, such as "before send" and "after send".
var venues = map[string]func(w *testGateway, reach func(point string)) venue{
	"telegram": func(w *testGateway, reach func(string)) venue {
		names := map[string]string{"sendMessage": "send", "editMessageText": "edit", "getUpdates": "poll"}
		w.tg.Watch(func(e telegramtest.Event) { reach(when(e.Done) + spell(names, e.Method)) })
		return onTelegram{w}
	},
	"discord": func(w *testGateway, reach func(string)) venue {
		names := map[string]string{
			"POST /channels/{id}/messages": "send", "PATCH /channels/{id}/messages/{id}": "edit", "GET /channels/{id}/messages": "backfill",
		}
		w.discord(discordtest.Config{}).Watch(func(e discordtest.Event) { reach(when(e.Done) + spell(names, e.Route)) })
		return onDiscord{w, reach}
	},
	"web": func(w *testGateway, reach func(string)) venue {
		w.more["http"] = map[string]any{"listen": networktest.FreeAddress(w.t)}
		return &onWeb{testGateway: w, reach: reach}
	},
}

func when(done bool) string {
	if done {
		return "after "
	}
	return "before "
}

func spell(names map[string]string, name string) string {
	if short := names[name]; short != "" {
		return short
	}
	return name
}

type onTelegram struct{ *testGateway }

func (v onTelegram) open(int)                  {}
func (v onTelegram) say(chat int, text string) { v.tg.Say(int64(person+chat), text) }
func (v onTelegram) check()                    {}

func (v onTelegram) wait(ctx context.Context, chat int, ok func([]string) bool) (texts []string, err error) {
	err = v.tg.WaitChat(ctx, int64(person+chat), func(ms []telegramtest.Message) bool {
		texts = botTexts(ms)
		return ok(texts)
	})
	return texts, err
}

type onDiscord struct {
	*testGateway
	reach func(string)
}

// discord adds a Discord to the testGateway, where the person is an owner, too.
func (w *testGateway) discord(cfg discordtest.Config) *discordtest.Server {
	w.dc = discordtest.NewServer(cfg)
	w.t.Cleanup(func() {
		w.kill()
		w.dc.Close()
	})
	w.channels["discord"] = map[string]any{
		"token": w.dc.Token(), "allow": []string{"*"}, "apiUrl": w.dc.URL, "gatewayUrl": w.dc.GatewayURL,
	}
	w.owners = append(w.owners, fmt.Sprint("discord:", person))
	return w.dc
}

// online waits until the bot hears.
func (w *testGateway) online() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitTime)
	defer cancel()
	if err := w.dc.Wait(ctx, discordtest.View.Online); err != nil {
		w.t.Fatalf("the bot does not come to Discord: %v", err)
	}
}

// offline waits until Discord knows that a bot that was killed is gone: online
// would take it for the next one.
func (w *testGateway) offline() {
	w.t.Helper()
	if w.dc == nil {
		return
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), waitTime)
	defer cancel()
	if err := w.dc.Wait(ctx, func(v discordtest.View) bool { return !v.Online() }); err != nil {
		w.t.Fatalf("Discord does not see that the bot is gone: %v", err)
	}
}

func (v onDiscord) dm(chat int) string { return v.dc.DM(fmt.Sprint(person + chat)) }
func (v onDiscord) open(int)           { v.online() }
func (v onDiscord) check()             {}

func (v onDiscord) say(chat int, text string) {
	v.dc.Say(v.dm(chat), fmt.Sprint(person+chat), "", text)
	v.reach("after say")
}

func (v onDiscord) wait(ctx context.Context, chat int, ok func([]string) bool) (texts []string, err error) {
	err = v.dc.WaitChat(ctx, v.dm(chat), func(ms []discordtest.Message) bool {
		texts = nil
		for _, m := range ms {
			if m.FromBot() {
				texts = append(texts, words(m.Text))
			}
		}
		return ok(texts)
	})
	return texts, err
}

// onWeb is a browser with a tab for each chat. It says things as the page does,
// under the same id until they are taken, and reads on from what it read last.
type onWeb struct {
	*testGateway
	reach func(string)
	v     *visitor
	tabs  []*tab
	live  sync.WaitGroup
}

type tab struct {
	id     string // of the conversation
	mu     sync.Mutex
	said   int
	unsent []string
	lines  []line // as they came
	news   chan struct{}
}

func (v *onWeb) open(chats int) {
	v.v = v.visit()
	ctx, leave := context.WithCancel(v.t.Context())
	v.t.Cleanup(func() {
		leave()
		v.live.Wait()
	})
	for chat := range chats {
		b := &tab{id: v.v.conversation(), news: make(chan struct{})}
		v.v.do("PATCH", "/c/"+b.id, map[string]string{"title": fmt.Sprint("Chat ", chat)}) // a blank one would be the next one, too
		v.tabs = append(v.tabs, b)
		v.live.Go(func() { v.send(ctx, b) })
		v.live.Go(func() { v.read(ctx, b) })
	}
}

func (b *tab) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.news)
	b.news = make(chan struct{})
}

func (v *onWeb) say(chat int, text string) {
	b := v.tabs[chat]
	b.change(func() { b.unsent = append(b.unsent, text) })
}

// send sends what was said, in order, each until it is taken.
func (v *onWeb) send(ctx context.Context, b *tab) {
	for ctx.Err() == nil {
		b.mu.Lock()
		said, unsent, news := b.said, b.unsent, b.news
		b.mu.Unlock()
		if len(unsent) == 0 {
			select {
			case <-news:
			case <-ctx.Done():
			}
			continue
		}
		v.reach("before say")
		status, _ := v.v.do("POST", "/c/"+b.id+"/messages", map[string]any{"id": fmt.Sprintf("message-%s-%d", b.id, said+1), "text": unsent[0]})
		if status != http.StatusAccepted {
			soon(ctx)
			continue
		}
		b.change(func() { b.said, b.unsent = b.said+1, b.unsent[1:] })
		v.reach("after say")
	}
}

// read reads along, whenever there is somebody to read from.
func (v *onWeb) read(ctx context.Context, b *tab) {
	for ctx.Err() == nil {
		b.mu.Lock()
		last := uint64(0)
		if n := len(b.lines); n > 0 {
			last = b.lines[n-1].Seq
		}
		b.mu.Unlock()
		_ = v.v.follow(ctx, b.id, last, func(event string, l line) bool {
			if event == "message" {
				b.change(func() { b.lines = append(b.lines, l) })
			}
			v.reach(event + " " + l.Who)
			return true
		})
		soon(ctx)
	}
}

// soon waits for a moment in which a dead gateway may have come back.
func soon(ctx context.Context) {
	select {
	case <-time.After(5 * time.Millisecond):
	case <-ctx.Done():
	}
}

// follow reads the conversation from what came after line last on, until it
// breaks off or f has read enough.
func (v *visitor) follow(ctx context.Context, conversation string, last uint64, f func(event string, l line) (more bool)) error {
	req, err := http.NewRequestWithContext(ctx, "GET", v.base+"/c/"+conversation+"/events", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Last-Event-ID", fmt.Sprint(last))
	resp, err := (&http.Client{Jar: v.Jar}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("events: %s", resp.Status)
	}
	in, event := bufio.NewScanner(resp.Body), ""
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if name, found := strings.CutPrefix(in.Text(), "event: "); found {
			event = name
		}
		data, found := strings.CutPrefix(in.Text(), "data: ")
		if !found {
			continue
		}
		var l line
		if err := json.Unmarshal([]byte(data), &l); err != nil {
			return err
		}
		if !f(event, l) {
			return nil
		}
	}
	return in.Err()
}

func (v *onWeb) wait(ctx context.Context, chat int, ok func([]string) bool) ([]string, error) {
	for b := v.tabs[chat]; ; {
		b.mu.Lock()
		texts, news := spokenBy(b.lines, "parley"), b.news
		b.mu.Unlock()
		if ok(texts) {
			return texts, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return texts, ctx.Err()
		}
	}
}

// spokenBy returns what who said in lines, as it was corrected.
func spokenBy(lines []line, who string) (texts []string) {
	place := map[uint64]int{}
	for _, l := range lines {
		i, edit := place[l.Edits]
		switch {
		case l.Who != who:
		case edit:
			texts[i] = l.Text
		default:
			place[l.Seq] = len(texts)
			texts = append(texts, l.Text)
		}
	}
	return texts
}

// check: each line came once, and is what a tab shows that is opened now; what
// was said is there once (P3).
func (v *onWeb) check() {
	v.t.Helper()
	for chat, b := range v.tabs {
		b.mu.Lock()
		lines, all := slices.Clone(b.lines), b.said+len(b.unsent) // an answer may be here before its question is confirmed
		b.mu.Unlock()
		var seqs, again []uint64
		ids := map[string]bool{}
		for _, l := range lines {
			seqs = append(seqs, l.Seq)
			if l.Edits == 0 && ids[l.Who+l.ID] {
				v.t.Errorf("chat %d: %s is there twice: %+v", chat, l.ID, lines)
			}
			ids[l.Who+l.ID] = true
		}
		if n := len(spokenBy(lines, "you")); n != all {
			v.t.Errorf("chat %d: %d messages are shown of %d", chat, n, all)
		}
		ctx, cancel := context.WithTimeout(v.t.Context(), waitTime)
		_ = v.v.follow(ctx, b.id, 0, func(event string, l line) bool {
			if event == "message" {
				again = append(again, l.Seq)
			}
			return len(again) < len(lines)
		})
		cancel()
		if !slices.Equal(seqs, again) {
			v.t.Errorf("chat %d: one tab was sent %v, another %v", chat, seqs, again)
		}
	}
}
