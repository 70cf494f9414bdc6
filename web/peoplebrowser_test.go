package web

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/channels/admission"
	"parley/chat"
	"parley/llm"
	"parley/store/mem"
	"parley/web/layout"
	"parley/web/peoplepages"
	"parley/web/webtest"
)

// withPeople has the page of people: two owners, one whom the config lets in, one who was paired, and a group.
func withPeople(t *testing.T, name string) (access *admission.Control, change func(*Config)) {
	t.Helper()
	access = admission.NewControl(admission.Config{
		Store: mem.New(), Log: slog.New(slog.DiscardHandler), Welcome: func(context.Context, admission.Pairing) error { return nil },
	})
	rules, err := admission.NewRules([]string{"web:owner", "telegram:1"}, map[string][]string{
		"telegram": {"7"}, "discord": {"*"}, "web": {"*"}, "api": {"*"}, // the last two as each config has them
	})
	if err != nil {
		t.Fatal(err)
	}
	access.SetRules(rules)
	asks := chat.Message{ID: "1", At: chat.Address{Channel: "telegram", Chat: "42"}, From: chat.Sender{ID: "42", Name: name}, Account: "bot"}
	asked, due, err := access.Request(t.Context(), asks)
	if err != nil || !due {
		t.Fatal(due, err)
	}
	if _, err := access.Approve(t.Context(), asked.Code); err != nil {
		t.Fatal(err)
	}
	today := time.Now().UTC()
	spent := func(context.Context) ([]llm.Spent, error) {
		return []llm.Spent{
			{Day: today.Format(time.DateOnly), Who: "owner", Turns: 12, Usage: llm.Usage{In: 40_000, Out: 2_000}, Cost: 0.31},
			{Day: today.Format(time.DateOnly), Who: "telegram:42", Turns: 2, Usage: llm.Usage{In: 900, Out: 100}},
			{Day: today.AddDate(0, 0, -3).Format(time.DateOnly), Who: "telegram:42", Turns: 1, Usage: llm.Usage{In: 400, Out: 100}},
			{Day: today.AddDate(0, 0, -35).Format(time.DateOnly), Who: "telegram:-100", Turns: 1, Usage: llm.Usage{In: 1, Out: 1}},
			{Day: today.Format(time.DateOnly), Who: "discord:9", Turns: 1, Usage: llm.Usage{In: 1, Out: 1}},
		}, nil
	}
	talks := func(context.Context, string) ([]chat.Talk, error) {
		return []chat.Talk{{Session: "telegram:7", Last: today.AddDate(0, 0, -9)}}, nil
	}
	return access, func(c *Config) {
		c.Gateway.Pages = []layout.Pages{&peoplepages.Pages{
			Access: access, Talks: talks, Usage: spent, Zone: time.UTC, Audit: c.Audit,
			Invited: func(context.Context) (map[string]time.Time, error) {
				return map[string]time.Time{"anna": time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)}, nil
			},
			Limit: func() (int, float64) { return 20_000_000, 5 },
			Stop: func(_ context.Context, channel, id, who string) error {
				c.Audit("stopped", who, channel+":"+id)
				return nil
			},
		}}
		c.Blocked = func(ctx context.Context, name string) (bool, error) { return access.IsBlocked(ctx, "web", name) }
	}
}

// The people of all channels are listed with why they may talk, when they were seen and what they used; who was paired
// is unpaired by an owner only.
func TestEverybody(t *testing.T) {
	access, change := withPeople(t, "Bert")
	f := newFace(t, change)
	boss := f.owner(t)
	all := map[string]peoplepages.Person{}
	var order []string
	for _, p := range decoded[struct{ People []peoplepages.Person }](t, f.want(t, 200, asking{path: "/api/people/everybody", by: boss})).People {
		all[p.ID] = p
		order = append(order, p.ID)
	}
	today := time.Now().UTC().Format(time.DateOnly)
	if want := "owner telegram:1 web:owner discord:9 telegram:42 telegram:7 discord:* web:anna telegram:-100"; strings.Join(order, " ") != want {
		t.Errorf("they are %q, want %q", order, want)
	}
	if bert := all["telegram:42"]; bert.Name != "Bert" || !bert.Paired || bert.Role != chat.User || bert.Seen != today || bert.Today.Tokens != 1000 || bert.Month.Tokens != 1500 || bert.Month.Answers != 3 {
		t.Errorf("Bert is %+v", bert)
	}
	if seven := all["telegram:7"]; seven.Why != "listed in channels.telegram.allow of the config" || seven.Seen == "" || seven.Seen >= today {
		t.Errorf("7 is %+v", seven)
	}
	if why := all["web:owner"].Why; why != `signs in as the owner: "web" is listed in owners of the config` {
		t.Errorf("the owner on the page is one since %q", why)
	}
	if anna := all["web:anna"]; anna.Role != chat.User || anna.Why != "invited to the web page on 2026-03-01" {
		t.Errorf("Anna is %+v", anna)
	}
	if nine := all["discord:9"]; nine.Role != chat.User || nine.Why != "everybody may talk there: the config says so" {
		t.Errorf("9 is %+v", nine)
	}
	if group := all["telegram:-100"]; group.Role != chat.Unknown || group.Month.Tokens != 0 {
		t.Errorf("the group is %+v", group)
	}
	unpair := asking{method: "POST", path: "/api/people/unpair", body: `{"id":"telegram:42"}`}
	f.want(t, 401, unpair)
	unpair.by = f.invited(t, "gast")
	f.want(t, 404, unpair)
	if role, err := access.Role(t.Context(), chat.Address{Channel: "telegram"}, "42"); role != chat.User || err != nil {
		t.Fatalf("somebody else unpaired Bert: %q, %v", role, err)
	}
	unpair.by = boss
	f.want(t, 204, unpair)
	f.want(t, 404, unpair)
	f.want(t, 400, asking{method: "POST", path: "/api/people/unpair", body: `{"id":"bert"}`, by: boss})
	if role, err := access.Role(t.Context(), chat.Address{Channel: "telegram"}, "42"); role != chat.Unknown || err != nil {
		t.Errorf("Bert may still talk: %q, %v", role, err)
	}
	if last := f.audited[len(f.audited)-1]; last != "access owner unpaired: telegram:42" {
		t.Errorf("the audit log has %q", last)
	}
}

// usualRules are those that a config makes.
func usualRules(t *testing.T) admission.Rules {
	t.Helper()
	rules, err := admission.NewRules([]string{"web:owner", "api:owner", "telegram:1"},
		map[string][]string{"telegram": {"7"}, "discord": {"*"}, "web": {"*"}, "api": {"*"}})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestBlockPeople: an owner blocks people and groups of channels that there are, but no owner, and unblocks them, with an
// entry in the audit log for each; nobody else can.
func TestBlockPeople(t *testing.T) {
	access, change := withPeople(t, "Bert")
	access.SetRules(usualRules(t))
	f := newFace(t, change)
	boss := f.owner(t)
	post := func(path, id string) asking {
		return asking{method: "POST", path: "/api/people/" + path, body: `{"id":"` + id + `"}`, by: boss}
	}
	stranger := post("block", "telegram:42")
	stranger.by = ""
	f.want(t, 401, stranger)
	stranger.by = f.invited(t, "gast")
	f.want(t, 404, stranger)
	for id, status := range map[string]int{
		"telegram:1": 409, "web:owner": 409, "api:owner": 409, "telegram:*": 400, "telegramm:42": 400, "telegram:": 400, ":42": 400, "bert": 400, "telegram:4 2": 400,
	} {
		f.want(t, status, post("block", id))
	}
	rules, err := admission.NewRules([]string{"web:owner", "api:owner", "api:carl"}, map[string][]string{"web": {"*"}, "api": {"*"}})
	if err != nil {
		t.Fatal(err)
	}
	access.SetRules(rules)
	f.want(t, 409, post("block", "web:carl")) // an owner through the API only
	if all, err := access.Blocked(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("an owner is half blocked: %+v, %v", all, err)
	}
	access.SetRules(usualRules(t))
	f.audited = nil
	f.want(t, 204, post("block", "telegram:42"))
	f.want(t, 204, post("block", "telegram:42"))
	f.want(t, 204, post("block", "telegram:-100"))
	f.want(t, 204, post("block", "api:anna"))
	f.want(t, 404, post("unblock", "telegram:7"))
	want := "access owner blocked: telegram:42, stopped owner telegram:42, access owner blocked: telegram:42, stopped owner telegram:42, " +
		"access owner blocked: telegram:-100, stopped owner telegram:-100, access owner blocked: api:anna, stopped owner web:anna, stopped owner api:anna"
	if got := strings.Join(f.audited, ", "); got != want {
		t.Errorf("the audit log has\n%s, want\n%s", got, want)
	}
	shown := map[string]peoplepages.Person{}
	for _, p := range decoded[struct{ People []peoplepages.Person }](t, f.want(t, 200, asking{path: "/api/people/everybody", by: boss})).People {
		shown[p.ID] = p
	}
	for _, id := range []string{"telegram:42", "telegram:-100", "web:anna"} {
		if p := shown[id]; !p.Blocked || p.Role != chat.Unknown || !strings.HasPrefix(p.Why, "blocked on ") || !strings.HasSuffix(p.Why, " by owner") {
			t.Errorf("%s is %+v", id, p)
		}
	}
	f.want(t, 204, post("unblock", "web:anna"))
	f.want(t, 204, post("unblock", "telegram:42"))
	if role, err := access.Role(t.Context(), chat.Address{Channel: "telegram"}, "42"); role != chat.User || err != nil {
		t.Errorf("Bert is %q, %v", role, err)
	}
	if left, err := access.Blocked(t.Context()); err != nil || len(left) != 1 {
		t.Errorf("%+v are left, %v", left, err)
	}
	if last := f.audited[len(f.audited)-1]; last != "access owner unblocked: telegram:42" {
		t.Errorf("the audit log has %q", last)
	}
}

// TestBlockedVisitor: cookies, keys and links of somebody who is blocked let nobody in, their open streams end at once,
// and once they are unblocked all of these work again.
func TestBlockedVisitor(t *testing.T) {
	access, change := withPeople(t, "Bert")
	access.SetRules(usualRules(t))
	streaming := make(chan struct{})
	ended := make(chan struct{})
	f := newFace(t, change, func(c *Config) {
		c.Chat = func(w http.ResponseWriter, r *http.Request, _ chat.Sender) {
			if r.URL.Path != "/stream" {
				return
			}
			close(streaming)
			<-r.Context().Done()
			close(ended)
		}
	})
	boss := f.owner(t)
	guest := f.invited(t, "anna")
	key := decoded[struct{ Secret string }](t, f.want(t, 201, asking{method: "POST", path: "/api/keys", body: `{"person":"anna"}`, by: boss})).Secret
	withKey := asking{path: "/v1/models", header: http.Header{"Authorization": {"Bearer " + key}}}
	f.want(t, 200, withKey)
	f.want(t, 200, asking{path: "/", by: guest})
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.ask(asking{path: "/stream", by: guest})
	}()
	<-streaming
	if err := access.Block(t.Context(), "web", "anna", "owner"); err != nil {
		t.Fatal(err)
	}
	f.Disconnect("anna")
	<-ended
	<-done
	f.want(t, 401, asking{path: "/", by: guest})
	f.want(t, 401, withKey)
	if _, err := f.Link(t.Context(), "anna"); err == nil {
		t.Error("who is blocked gets a link")
	}
	if may, err := f.May(t.Context(), "anna"); may || err != nil {
		t.Errorf("who is blocked may sign in: %v, %v", may, err)
	}
	f.Disconnect(ownerName) // which does nothing to owners
	f.want(t, 200, asking{path: "/", by: boss})
	if _, err := access.Unblock(t.Context(), "web", "anna"); err != nil {
		t.Fatal(err)
	}
	f.want(t, 200, asking{path: "/", by: guest})
	f.want(t, 200, withKey)
}

// In a real browser, on a desk and on a phone: somebody is unpaired, after a question; names of people are text.
func TestBrowserEverybody(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 5*time.Minute)
	defer end()
	_, change := withPeople(t, evil)
	at, f := served(t, change)
	link, err := f.Link(t.Context(), ownerName)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = chromedp.Run(ctx, chromedp.Navigate(link))
	webtest.Until(ctx, t, `document.body.innerText.includes("chat / for owner")`)
	_, _ = chromedp.Run(ctx, chromedp.Navigate(at+"/owner/people"))
	webtest.Until(ctx, t, `document.querySelectorAll("tbody tr").length === 9 && document.images.length === 0`)
	fitsPhone(t, ctx, "/owner/people")
	webtest.AxeEverywhere(ctx, t, "/owner/people")
	shoot(t, ctx, "/owner/people")
	_, err = chromedp.Run(ctx, chromedp.Evaluate[string](`window.confirm = (sure) => { window.sure = sure; return false }; document.querySelector("[data-post$=unpair]").click(); ""`))
	if err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `window.sure.startsWith("Unpair telegram:42?") && document.querySelectorAll("tbody [data-post$=unpair]").length === 1`)
	press := func(selector, then string) {
		t.Helper()
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](`window.confirm = (sure) => { window.sure = sure; return true }; window.before = true; document.querySelector("`+selector+`").click(); ""`)); err != nil {
			t.Fatal(err)
		}
		webtest.Until(ctx, t, `!window.before && document.readyState === "complete" && `+then)
	}
	press(`[aria-label='Block telegram:7']`, `document.querySelector("[aria-label='Unblock telegram:7']") !== null && document.querySelectorAll("tbody .state.warn").length === 1`)
	fitsPhone(t, ctx, "/owner/people")
	webtest.Until(ctx, t, `[...document.querySelectorAll(".wide")].every(e => e.scrollWidth <= e.clientWidth)`) // nor on a desk
	webtest.AxeEverywhere(ctx, t, "/owner/people blocked")
	shoot(t, ctx, "/owner/people/blocked")
	press(`[aria-label='Unblock telegram:7']`, `document.querySelector("[aria-label='Block telegram:7']") !== null`)
	press(`[data-post$=unpair]`, `document.querySelectorAll("tbody [data-post$=unpair]").length === 0`)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.getElementById("block").value = "telegram:1"; document.querySelector("form[data-post$=block] button").click(); ""`)); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `document.getElementById("said").textContent.startsWith("owners cannot be blocked")`)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 800)); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll("main button, main a.button, main input")].every(e => e.getBoundingClientRect().height >= 44)`)
}
