package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/web/webtest"
)

// P2 P3: 202 once the message is in the log and in the gateway; again is the same.
func TestP3SaidTwice(t *testing.T) {
	h := newTestGateway(t)
	var down atomic.Bool
	heard, _ := h.hear(func(chat.Message) error {
		if down.Load() {
			return errors.New("disk full")
		}
		return nil
	})
	b := h.watch("anna", firstID, "")
	down.Store(true)
	for range 2 {
		h.must(http.StatusServiceUnavailable, "anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "hello"})
	}
	down.Store(false)
	one := h.must(http.StatusAccepted, "anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "hello"})
	again := h.must(http.StatusAccepted, "anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "hello"})
	if one != again || one != "{\"seq\":1}\n" {
		t.Errorf("answers %q and %q", one, again)
	}
	for _, m := range heard() {
		if m.Key() != "web//anna/first.message-1" || m.Text != "hello" || m.From != (chat.Sender{ID: "anna", Name: "anna"}) || m.At != h.address("anna", firstID) {
			t.Errorf("heard %+v", m)
		}
	}
	h.reply("anna", firstID, "re:1", "hi")
	b.shows(t, "hello", "hi")
}

// P2: an id is one message's within its conversation. Another conversation of the
// same person may use it, too.
func TestP2SameIDElsewhere(t *testing.T) {
	h := newTestGateway(t)
	heard, _ := h.hear(nil)
	h.say("anna", firstID, "message-1", "one")
	h.say("anna", noticesID, "message-1", "another")
	keys := map[string]bool{}
	for _, m := range heard() {
		keys[m.Key()] = true
	}
	if len(keys) != 2 {
		t.Errorf("the gateway knows them as %v", keys)
	}
}

// What was answered is not handed to the gateway again: it forgets keys after 48 hours (P2).
func TestP2AnsweredLongAgo(t *testing.T) {
	h := newTestGateway(t)
	heard, _ := h.hear(nil)
	h.say("anna", firstID, "message-1", "hello")
	if _, err := h.Send(t.Context(), chat.Reply{ID: "r1", To: h.address("anna", firstID), Text: "hi", Quote: "message-0", Also: []string{"message-1"}}); err != nil {
		t.Fatal(err)
	}
	h.say("anna", firstID, "message-1", "hello")
	if n := len(heard()); n != 1 {
		t.Errorf("delivered %d times", n)
	}
}

// A gateway that does not hear says so, before Run and after.
func TestDeaf(t *testing.T) {
	h := newTestGateway(t)
	h.must(http.StatusServiceUnavailable, "anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "hello"})
	_, stop := h.hear(nil)
	h.say("anna", firstID, "message-1", "hello")
	stop()
	h.must(http.StatusServiceUnavailable, "anna", "POST", "/c/first/messages", words{"id": "message-2", "text": "hello"})
}

// Commands are delivered and not shown.
func TestQuiet(t *testing.T) {
	h := newTestGateway(t)
	heard, _ := h.hear(nil)
	h.must(http.StatusAccepted, "anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "/stop", "quiet": true})
	h.must(http.StatusBadRequest, "anna", "POST", "/c/first/messages", words{"id": "message-2", "text": "stop", "quiet": true})
	if ms := heard(); len(ms) != 1 || ms[0].Text != "/stop" {
		t.Errorf("heard %+v", ms)
	}
	h.reply("anna", firstID, "r1", "stopped")
	h.watch("anna", firstID, "").shows(t, "stopped")
}

func TestMessagesRefused(t *testing.T) {
	h := newTestGateway(t)
	heard, _ := h.hear(nil)
	for _, c := range []struct {
		body   any
		status int
	}{
		{words{"id": "short", "text": "x"}, http.StatusBadRequest},
		{words{"id": strings.Repeat("x", 65), "text": "x"}, http.StatusBadRequest},
		{words{"id": "message/1", "text": "x"}, http.StatusBadRequest},
		{words{"id": "message-1", "text": " \n"}, http.StatusBadRequest},
		{words{"id": "message-1", "text": strings.Repeat("x", 64<<10+1)}, http.StatusRequestEntityTooLarge},
		{words{"id": "message-1", "text": strings.Repeat("x", 1<<20)}, http.StatusRequestEntityTooLarge},
		{words{"id": "message-1", "text": "x", "who": "owner"}, http.StatusBadRequest},
		{words{"id": "message-1", "text": "x", "files": []string{"abcdefgh"}}, http.StatusNotFound},
		{words{"id": "message-1", "text": "x", "files": make([]string, 21)}, http.StatusBadRequest},
		{"words", http.StatusBadRequest},
	} {
		h.must(c.status, "anna", "POST", "/c/first/messages", c.body)
	}
	if ms := heard(); len(ms) > 0 {
		t.Errorf("heard %+v", ms)
	}
}

// R-S5: wrong methods and content types change nothing.
func TestRS5MethodAndType(t *testing.T) {
	h := newTestGateway(t)
	heard, _ := h.hear(nil)
	for _, c := range []struct {
		method, path, kind string
		status             int
	}{
		{"GET", "/c/first/messages", "application/json", http.StatusMethodNotAllowed},
		{"PUT", "/c/first/messages", "application/json", http.StatusMethodNotAllowed},
		{"POST", "/c/first", "application/json", http.StatusMethodNotAllowed},
		{"GET", "/c", "application/json", http.StatusMethodNotAllowed},
		{"POST", "/talks", "application/json", http.StatusMethodNotAllowed},
		{"POST", "/files", "application/octet-stream", http.StatusMethodNotAllowed},
		{"DELETE", "/", "application/json", http.StatusMethodNotAllowed},
		{"GET", "/nothing", "application/json", http.StatusNotFound},
		{"POST", "/c/first/messages", "text/plain", http.StatusUnsupportedMediaType},
		{"POST", "/c/first/messages", "application/x-www-form-urlencoded", http.StatusUnsupportedMediaType},
		{"POST", "/c/first/messages", "multipart/form-data; boundary=x", http.StatusUnsupportedMediaType},
		{"POST", "/c/first/messages", "", http.StatusUnsupportedMediaType},
		{"POST", "/c/first/answer", "text/plain", http.StatusUnsupportedMediaType},
		{"POST", "/c", "text/plain", http.StatusUnsupportedMediaType},
		{"PATCH", "/c/first", "text/plain", http.StatusUnsupportedMediaType},
		{"PUT", "/files?name=x", "text/plain", http.StatusUnsupportedMediaType},
		{"PUT", "/files?name=x", "multipart/form-data; boundary=x", http.StatusUnsupportedMediaType},
	} {
		body := words{"id": "message-1", "text": "x", "title": "x"}
		if res, _ := h.do("anna", c.method, c.path, body, "Content-Type", c.kind); res.StatusCode != c.status {
			t.Errorf("%s %s as %q = %d, want %d", c.method, c.path, c.kind, res.StatusCode, c.status)
		}
	}
	if ms := heard(); len(ms) > 0 {
		t.Errorf("heard %+v", ms)
	}
	if got := h.must(http.StatusOK, "anna", "GET", "/talks", nil); got != `[{"id":"first","title":"New conversation"}]`+"\n" {
		t.Errorf("talks: %s", got)
	}
}

// R-S5: looking writes nothing, not even for somebody who is new.
func TestRS5GetWritesNothing(t *testing.T) {
	d := &disk{Store: mem.New(), crash: 1, died: make(chan struct{})}
	h := open(t, d)
	res, _ := h.do("anna", "GET", "/", nil)
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/c/first" {
		t.Errorf("GET / = %v to %v", res.StatusCode, res.Header.Get("Location"))
	}
	for _, path := range []string{"/c/first", "/c/notices", "/c/first/before?seq=9", "/talks", "/talks?q=x"} {
		h.must(http.StatusOK, "anna", "GET", path, nil)
	}
	h.watch("anna", firstID, "")
	if d.ops != 0 {
		t.Errorf("%d writes", d.ops)
	}
}

// A person sees only their own; what others have is as if it were not there.
func TestStrangers(t *testing.T) {
	h := newTestGateway(t)
	heard, _ := h.hear(nil)
	h.say("anna", firstID, "message-1", "my secret")
	id := h.begun(t, "anna")
	h.say("anna", id, "message-2", "another secret")
	h.write("out/a.txt", "secret file")
	if _, err := h.Send(t.Context(), chat.Reply{ID: "r1", To: h.address("anna", id), Text: "take it", Files: []chat.File{{Path: "out/a.txt"}},
		Ask: &chat.Question{ID: "q1", Choices: []string{"yes"}}}); err != nil {
		t.Fatal(err)
	}
	b := h.watch("anna", id, "")
	b.shows(t, "another secret", "take it")
	url := b.entries()[1].Files[0].URL
	h.must(http.StatusOK, "anna", "GET", url, nil)
	before := len(heard())
	for _, bad := range []string{id, "forged00", "..", "%2e%2e", "first%00", "anna%00first", "%00anna"} {
		for _, c := range [][2]string{{"GET", ""}, {"GET", "/events"}, {"GET", "/before?seq=5"}, {"POST", "/messages"}, {"POST", "/answer"}, {"PATCH", ""}, {"DELETE", ""}} {
			var body any
			switch c[1] {
			case "/messages":
				body = words{"id": "message-3", "text": "hi"}
			case "/answer":
				body = words{"id": "message-3", "question": "q1", "choice": 0}
			}
			if c[0] == "PATCH" {
				body = words{"title": "mine"}
			}
			if res, got := h.do("ben", c[0], "/c/"+bad+c[1], body); res.StatusCode != http.StatusNotFound && res.StatusCode/100 != 3 && res.StatusCode != http.StatusMethodNotAllowed || strings.Contains(got, "secret") {
				t.Errorf("%s /c/%s%s = %d %s", c[0], bad, c[1], res.StatusCode, got)
			}
		}
	}
	h.must(http.StatusNotFound, "ben", "GET", url, nil)
	h.must(http.StatusNotFound, "ben", "POST", "/c/first/messages", words{"id": "message-3", "text": "hi", "files": []string{strings.Split(url, "/")[2]}})
	h.must(http.StatusNotFound, "ben", "POST", "/c/first/answer", words{"id": "message-3", "question": "q1", "choice": 0})
	for _, path := range []string{"/c/first", "/talks", "/talks?q=secret", "/c/first/before?seq=5"} {
		if got := h.must(http.StatusOK, "ben", "GET", path, nil); strings.Contains(got, "secret") {
			t.Errorf("%s tells ben: %s", path, got)
		}
	}
	if n := len(heard()); n != before {
		t.Errorf("%d messages of ben were heard", n-before)
	}
	b.shows(t, "another secret", "take it")
}

func (h *testGateway) begun(t *testing.T, who string) string {
	t.Helper()
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(h.must(http.StatusCreated, who, "POST", "/c", words{})), &made); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func (h *testGateway) talks(t *testing.T, who, query string) (all []listItem) {
	t.Helper()
	if err := json.Unmarshal([]byte(h.must(http.StatusOK, who, "GET", "/talks"+query, nil)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func titlesIn(ts []listItem) (all []string) {
	for _, t := range ts {
		all = append(all, t.Title+t.Snippet)
	}
	return all
}

// Conversations are made, named, renamed, found and deleted.
func TestTalks(t *testing.T) {
	var forgot []chat.SessionID
	h := newTestGateway(t, func(c *Config) {
		c.Forget = func(_ context.Context, id chat.SessionID) error { forgot = append(forgot, id); return nil }
		c.Search = func(_ context.Context, who, words string) ([]chat.Find, error) {
			if who != "anna" || words != "TEA" {
				t.Errorf("search for %q of %q", words, who)
			}
			return []chat.Find{
				{Session: "web:anna/first", Entry: chat.Entry{Text: "…green tea…"}},
				{Session: "web:ben/first", Entry: chat.Entry{Text: "ben's tea"}},
				{Session: "telegram:1", Entry: chat.Entry{Text: "tea there"}},
				{Session: "web:anna/gone0000", Entry: chat.Entry{Text: "old tea"}},
			}, nil
		}
	})
	h.hear(nil)
	b := h.watch("anna", firstID, "")
	h.say("anna", firstID, "message-1", "  What is\n the best "+strings.Repeat("very ", 30)+"tea?")
	until(t, "the tab hears of the list", func() bool { return len(b.all("talks")) > 0 })
	second := h.begun(t, "anna")
	if again := h.begun(t, "anna"); again != second {
		t.Errorf("a conversation that is empty is not used: %q and %q", second, again)
	}
	if res, _ := h.do("anna", "GET", "/", nil); res.Header.Get("Location") != "/c/"+second {
		t.Errorf("GET / leads to %q, not to the newest", res.Header.Get("Location"))
	}
	h.must(http.StatusOK, "anna", "PATCH", "/c/"+second, words{"title": " Tea\x00 \u202eparty "})
	h.must(http.StatusBadRequest, "anna", "PATCH", "/c/"+second, words{"title": " \u202e"})
	h.say("anna", second, "message-2", "who comes?")
	if got := titlesIn(h.talks(t, "anna", "")); len(got) != 2 || got[0] != "Tea party" || !strings.HasPrefix(got[1], "What is the best very") || len(got[1]) > 70 {
		t.Errorf("talks %q", got)
	}
	if got := titlesIn(h.talks(t, "anna", "?q=TEA")); len(got) != 2 || got[0] != "Tea party" || !strings.HasSuffix(got[1], "…green tea…") {
		t.Errorf("found %q", got)
	}
	h.must(http.StatusNoContent, "anna", "DELETE", "/c/"+second, nil)
	for _, path := range []string{"/c/" + second, "/c/" + second + "/events"} {
		h.must(http.StatusNotFound, "anna", "GET", path, nil)
	}
	if got := h.talks(t, "anna", ""); len(got) != 1 || got[0].ID != firstID {
		t.Errorf("talks %+v after one was deleted", got)
	}
	if !slices.Equal(forgot, []chat.SessionID{chat.SessionID("web:anna/" + second)}) {
		t.Errorf("forgot %q", forgot)
	}
	var e *channels.Error
	if _, err := h.Send(t.Context(), chat.Reply{ID: "late", To: h.address("anna", second), Text: "late"}); !errors.As(err, &e) || !e.Permanent {
		t.Errorf("a reply to what was deleted: %v", err)
	}
}

// What is deleted is gone from the store, and the place can be used again.
func TestDeleteFirst(t *testing.T) {
	s := mem.New()
	h := open(t, s)
	h.hear(nil)
	b, f := h.watch("anna", firstID, ""), h.upload(t, "anna", "cat.png", png)
	h.must(http.StatusAccepted, "anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "secret", "files": []string{f.ID}})
	h.must(http.StatusNoContent, "anna", "DELETE", "/c/first", nil)
	for rec, err := range s.Log("web/anna/first").Since(t.Context(), 0) {
		t.Errorf("left: %s, %v", rec.Body, err)
	}
	if got := h.talks(t, "anna", ""); len(got) != 1 || got[0].Title != "New conversation" {
		t.Errorf("talks %+v", got)
	}
	until(t, "whoever read along is sent to look again", func() bool { return len(b.all("resync")) == 1 })
	h.must(http.StatusNotFound, "anna", "GET", f.URL, nil)
	h.say("anna", firstID, "message-2", "again")
	h.watch("anna", firstID, "").shows(t, "again")
	if got := h.must(http.StatusOK, "anna", "GET", "/c/first", nil); !strings.Contains(got, "again") || strings.Contains(got, "secret") {
		t.Errorf("page: %s", got)
	}
}

// A person can be spoken to first, and finds it.
func TestNotices(t *testing.T) {
	h := newTestGateway(t)
	if _, err := h.Send(t.Context(), chat.Reply{ID: "n1", To: h.Direct("anna"), Text: "remember the milk"}); err != nil {
		t.Fatal(err)
	}
	if got := h.talks(t, "anna", ""); len(got) != 2 || got[0].ID != "notices" || got[0].Title != "Notices" {
		t.Errorf("talks %+v", got)
	}
	h.watch("anna", noticesID, "").shows(t, "remember the milk")
}

// P9: the same reply is said once, also after a restart; P21: what is damaged is told.
func TestP9RepliesOnce(t *testing.T) {
	s := mem.New()
	h := open(t, s)
	one := h.reply("anna", firstID, "r1", "hello")
	_, leave := h.openRoom(h.address("anna", firstID)) // as a tab does
	for i := range 700 {
		h.reply("anna", firstID, fmt.Sprint("x", i), "more")
	}
	leave()
	last := h.reply("anna", firstID, "r2", "end")
	if _, err := s.Log("web/anna/first").Append(t.Context(), store.Any, []byte("{")); err != nil {
		t.Fatal(err)
	}
	h = open(t, s)
	for id, want := range map[string]channels.Receipt{"r1": one, "r2": last} { // however long ago it was
		if rc := h.reply("anna", firstID, id, "again"); rc != want {
			t.Errorf("receipt %q, want %q", rc, want)
		}
	}
	b := h.watch("anna", firstID, string(last))
	b.shows(t, "This message is damaged on disk.")
	if e := b.entries()[0]; e.Who != whoPage {
		t.Errorf("damaged: %+v", e)
	}
}

// An edit takes the place of what it edits, for those who watch and those who come later.
func TestEdit(t *testing.T) {
	h := newTestGateway(t)
	b := h.watch("anna", firstID, "")
	r := chat.Reply{ID: "r1", To: h.address("anna", firstID), Text: "Shall I?", Ask: &chat.Question{ID: "q1", Choices: []string{"<b>yes</b>", "no"}}}
	rc, err := h.Send(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	h.reply("anna", firstID, "r2", "waiting")
	r.Text, r.Ask = "Shall I? *no*", nil
	for range 3 {
		if err := h.Edit(t.Context(), rc, r); err != nil {
			t.Fatal(err)
		}
	}
	b.shows(t, "Shall I? *no*", "waiting")
	if n := len(b.all("message")); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
	page := h.must(http.StatusOK, "anna", "GET", "/c/first", nil)
	if !strings.Contains(page, "<em>no</em>") || strings.Contains(page, "b&gt;yes") || strings.Index(page, "Shall I") > strings.Index(page, "waiting") {
		t.Errorf("page: %s", page)
	}
	if !strings.Contains(page, `data-last="3"`) {
		t.Error("the page does not go on from the edit")
	}
	for _, bad := range []channels.Receipt{"", "x", "0", "99", "-1"} {
		var e *channels.Error
		if err := h.Edit(t.Context(), bad, r); !errors.As(err, &e) || !e.Permanent {
			t.Errorf("Edit %q = %v", bad, err)
		}
	}
}

// A page at a time, back to the beginning; what was changed long after says so.
func TestBefore(t *testing.T) {
	h := newTestGateway(t)
	rc := h.reply("anna", firstID, "r0", "not a number")
	for i := range 229 {
		h.reply("anna", firstID, fmt.Sprint("r", i+1), fmt.Sprint("number ", i+1))
	}
	page := h.must(http.StatusOK, "anna", "GET", "/c/first", nil)
	if !strings.Contains(page, "number 229<") || !strings.Contains(page, "number 130<") || strings.Contains(page, "number 129<") {
		t.Error("the page has not the last hundred")
	}
	if err := h.Edit(t.Context(), rc, chat.Reply{To: h.address("anna", firstID), Text: "number 0"}); err != nil {
		t.Fatal(err)
	}
	seq, n := uint64(131), 229
	for more := true; more; {
		var got struct {
			Entries []renderedEntry
			More    bool
		}
		if err := json.Unmarshal([]byte(h.must(http.StatusOK, "anna", "GET", fmt.Sprint("/c/first/before?seq=", seq), nil)), &got); err != nil {
			t.Fatal(err)
		}
		for i := len(got.Entries) - 1; i >= 0; i-- {
			if seq--; got.Entries[i].Seq != seq || got.Entries[i].Text != fmt.Sprint("number ", seq-1) {
				t.Fatalf("entry %d: %+v", seq, got.Entries[i])
			}
			n--
		}
		more = got.More
	}
	if seq != 1 {
		t.Errorf("ends at %d", seq)
	}
	for _, q := range []string{"", "?seq=0", "?seq=x", "?seq=-1"} {
		h.must(http.StatusBadRequest, "anna", "GET", "/c/first/before"+q, nil)
	}
}

// R-S5: whatever people, files and tools are called, it is shown as words.
func TestRS5TextIsText(t *testing.T) {
	const evil = `<img src=x onerror=alert(1)>"'><script>alert(2)</script>`
	h := newTestGateway(t)
	h.hear(nil)
	h.write("out/evil.txt", "x")
	b := h.watch(evil, firstID, "")
	h.say(evil, firstID, "message-1", evil)
	r := chat.Reply{ID: evil, To: h.address(evil, firstID), Text: evil + " `" + evil + "`", Quote: evil,
		Files: []chat.File{{Path: "out/evil.txt", Name: evil, Type: evil}, {Path: evil, Name: "`" + evil}},
		Ask:   &chat.Question{ID: evil, Choices: []string{evil}}, Steps: evil}
	h.Step(r, chat.Step{Call: evil, Tool: evil, State: chat.Done, Tip: evil, Params: map[string]any{evil: evil}, Result: evil, Error: evil})
	h.Stream(r)
	until(t, "the draft is shown", func() bool { return len(b.all("draft")) > 0 })
	if _, err := h.Send(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	h.must(http.StatusOK, evil, "PATCH", "/c/first", words{"title": evil})
	until(t, "both are shown", func() bool { return len(b.all("message")) == 2 })
	page := h.must(http.StatusOK, evil, "GET", "/c/first", nil)
	for _, tag := range []string{"<img", "<script>alert", "onerror=alert(1)>\""} {
		if strings.Contains(page, tag) {
			t.Errorf("the page has %q: %s", tag, page)
		}
	}
	if strings.Count(page, "&lt;img src=x onerror=alert(1)&gt;") < 5 {
		t.Errorf("the page does not show the words: %s", page)
	}
	for _, e := range b.entries() {
		if strings.Contains(string(e.HTML), "<img") || strings.Contains(string(e.HTML), "<script") {
			t.Errorf("html: %s", e.HTML)
		}
	}
	var d draftData
	if err := json.Unmarshal([]byte(b.all("draft")[0].data), &d); err != nil || strings.Contains(d.HTML, "<img") || d.Reply != evil {
		t.Errorf("draft %+v, %v", d, err)
	}
	for _, e := range b.all("step") { // rendered by the page, as text
		var s stepData
		if err := json.Unmarshal([]byte(e.data), &s); err != nil || s.Tool != evil || s.Result != evil || s.Error != evil {
			t.Errorf("step %q: %v", e.data, err)
		}
	}
}

// R-S5: no text of people, models or networks acts in the page, wherever it stands.
func TestRS5HostilePage(t *testing.T) {
	for _, text := range webtest.Hostile {
		h := newTestGateway(t)
		h.hear(nil)
		h.write("out/file.png", "x")
		h.say("anna", firstID, "message-1", text)
		files := []chat.File{
			{Path: "out/file.png", Name: text, Type: text},
			{Path: "out/file.png", Name: text, Type: "image/png"},
			{Path: text, Name: text},
		}
		reply := chat.Reply{ID: text, To: h.address("anna", firstID), Text: text, Quote: text, Files: files, Steps: text,
			Ask: &chat.Question{ID: text, Choices: []string{text}}}
		if _, err := h.Send(t.Context(), reply); err != nil {
			t.Fatal(err)
		}
		elsewhere := h.begun(t, "anna")
		for _, id := range []string{firstID, elsewhere} {
			page := h.must(http.StatusOK, "anna", "GET", "/c/"+id, nil)
			if faults := webtest.Active(page); len(faults) > 0 {
				t.Errorf("%q: %q in %s", text, faults, page)
			}
			if id == firstID && !webtest.Shows(page, text) {
				t.Errorf("%q is not shown: %s", text, page)
			}
		}
	}
}

// P19: a full disk is said as it is, and nothing is half done.
func TestP19DiskFull(t *testing.T) {
	d := &full{Store: mem.New()}
	h := open(t, d)
	heard, _ := h.hear(nil)
	d.is.Store(true)
	if res, _ := h.do("anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "hello"}); res.StatusCode < 500 {
		t.Errorf("said %v", res.StatusCode)
	}
	if _, err := h.Send(t.Context(), chat.Reply{ID: "r1", To: h.address("anna", firstID), Text: "hi"}); !errors.Is(err, store.ErrFull) {
		t.Errorf("Send = %v", err)
	}
	d.is.Store(false)
	h.say("anna", firstID, "message-1", "hello")
	h.watch("anna", firstID, "").shows(t, "hello")
	if n := len(heard()); n != 1 {
		t.Errorf("delivered %d times", n)
	}
}

// A full store takes no records while it is.
type full struct {
	store.Store
	is atomic.Bool
}

func (f *full) Log(name string) store.Log { return fullLog{f.Store.Log(name), f} }

type fullLog struct {
	store.Log
	f *full
}

func (l fullLog) Append(ctx context.Context, after uint64, recs ...[]byte) (uint64, error) {
	if l.f.is.Load() && len(recs) > 0 {
		return 0, store.ErrFull
	}
	return l.Log.Append(ctx, after, recs...)
}

// A record that was written although the store says it was not is said once (P3 P9).
func TestAppendInDoubt(t *testing.T) {
	d := &disk{Store: mem.New(), crash: 2, late: true, died: make(chan struct{})} // the second write is of the record
	h := open(t, d)
	r := chat.Reply{ID: "r1", To: h.address("anna", firstID), Text: "once"}
	if _, err := h.Send(t.Context(), r); !errors.Is(err, errDead) {
		t.Fatalf("Send = %v", err)
	}
	d.crash = 0
	if rc, err := h.Send(t.Context(), r); rc != "1" || err != nil {
		t.Errorf("Send = %q, %v", rc, err)
	}
	h.watch("anna", firstID, "").shows(t, "once")
}

// P16: Run ends what it hands over, and returns only then.
func TestP16RunWaits(t *testing.T) {
	h := newTestGateway(t)
	inside, ended := make(chan struct{}), atomic.Bool{}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- h.Channel.Run(ctx, func(ctx context.Context, m chat.Message) error {
			if m.ID == probe {
				return nil
			}
			close(inside)
			<-ctx.Done()
			for range 100 {
				runtime.Gosched()
			}
			ended.Store(true)
			return ctx.Err()
		})
	}()
	until(t, "the channel runs", func() bool {
		return !errors.Is(h.intake.Deliver(chat.Message{ID: probe}), network.ErrShut)
	})
	said := make(chan int, 1)
	go func() {
		res, _ := h.do("anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "hello"})
		said <- res.StatusCode
	}()
	<-inside
	stop()
	if err := <-over; err != nil || !ended.Load() {
		t.Errorf("Run = %v while a message was handed over", err)
	}
	if code := <-said; code != http.StatusServiceUnavailable {
		t.Errorf("said: %d", code)
	}
}
