package web

import (
	"context"
	"log/slog"
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
	rules, err := admission.NewRules([]string{"web", "telegram:1"}, map[string][]string{"telegram": {"7"}, "discord": {"*"}})
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
			Limit: func() (int, float64) { return 20_000_000, 5 },
		}}
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
	if want := "owner telegram:1 web discord:9 telegram:42 telegram:7 discord:* telegram:-100"; strings.Join(order, " ") != want {
		t.Errorf("they are %q, want %q", order, want)
	}
	if bert := all["telegram:42"]; bert.Name != "Bert" || !bert.Paired || bert.Role != chat.User || bert.Seen != today || bert.Today.Tokens != 1000 || bert.Month.Tokens != 1500 || bert.Month.Answers != 3 {
		t.Errorf("Bert is %+v", bert)
	}
	if seven := all["telegram:7"]; seven.Why != "listed in channels.telegram.allow of the config" || seven.Seen == "" || seven.Seen >= today {
		t.Errorf("7 is %+v", seven)
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
	if role, err := access.Role(t.Context(), "telegram", "42"); role != chat.User || err != nil {
		t.Fatalf("somebody else unpaired Bert: %q, %v", role, err)
	}
	unpair.by = boss
	f.want(t, 204, unpair)
	f.want(t, 404, unpair)
	f.want(t, 400, asking{method: "POST", path: "/api/people/unpair", body: `{"id":"bert"}`, by: boss})
	if role, err := access.Role(t.Context(), "telegram", "42"); role != chat.Unknown || err != nil {
		t.Errorf("Bert may still talk: %q, %v", role, err)
	}
	if last := f.audited[len(f.audited)-1]; last != "access owner unpaired: telegram:42" {
		t.Errorf("the audit log has %q", last)
	}
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
	webtest.Until(ctx, t, `document.querySelectorAll("tbody tr").length === 8 && document.images.length === 0`)
	fitsPhone(t, ctx, "/owner/people")
	webtest.AxeEverywhere(ctx, t, "/owner/people")
	shoot(t, ctx, "/owner/people")
	_, err = chromedp.Run(ctx, chromedp.Evaluate[string](`window.confirm = (sure) => { window.sure = sure; return false }; document.querySelector("[data-post]").click(); ""`))
	if err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `window.sure.startsWith("Unpair telegram:42?") && document.querySelectorAll("tbody [data-post]").length === 1`)
	_, err = chromedp.Run(ctx, chromedp.Evaluate[string](`window.confirm = () => true; window.before = true; document.querySelector("[data-post]").click(); ""`))
	if err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `!window.before && document.querySelectorAll("tbody [data-post]").length === 0`)
}
