package policy

import (
	"regexp"
	"strings"
	"testing"

	"parley/chat"
	"parley/store"
	"parley/texts"
	"parley/texts/textstest"
)

// B-073: people switch groups of tools for themselves, but for those that the policy
// forces.
func TestB073OwnToggle(t *testing.T) {
	d := newDesk(t)
	d.set(t, Global, "", `{"forced_category_states":{"data":true,"compat":false},"category_overrides":{"net":{"tools":["fetch"],"default_enabled":false},"bare":{"tools":["gone"]}}}`)
	says := func(text string, group bool, role chat.Role) string {
		t.Helper()
		m := chat.Message{Text: text, At: user.At, From: chat.Sender{ID: "42", Role: role}, Group: group}
		got, err := d.Command(t.Context(), m, texts.English().Tools.Groups)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := says("/groups", false, chat.Owner); strings.Contains(got, "bare") || !strings.Contains(got, "`web`") {
		t.Errorf("an owner is told of a group without tools: %s", got)
	}
	for _, c := range []struct{ text, want, left string }{
		{"/groups", "- `data`: on, as the owner decided (clock)\n- `net`: **off** (fetch)\n- `web`: on (web_search)", "clock web_search"},
		{"/groups off web", "I do without the tools of web.", "clock"},
		{"/groups off web", "I do without the tools of web.", "clock"},
		{"/groups on net", "I may use the tools of net.", "clock fetch"},
		{"/groups off data", "The owner has decided about data.", "clock fetch"},
		{"/groups off custom", "There is no group of tools called custom here.", "clock fetch"},
		{"/groups away", "/groups lists the groups", "clock fetch"},
		{"/groups off", "/groups lists the groups", "clock fetch"},
		{"/groups on web", "I may use the tools of web.", "clock fetch web_search"},
		{"/groups off net", "I do without the tools of net.", "clock web_search"},
	} {
		if got := says(c.text, false, chat.User); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.text, got)
		}
		if got := names(d.kit(t, user)); got != c.left {
			t.Errorf("after %s: %q", c.text, got)
		}
	}
	for key, err := range d.store.Bucket(store.BucketToolChoices).Keys(t.Context(), "") {
		t.Errorf("kept for nothing: %s %v", key, err)
	}
	if got := names(d.kit(t, owner)); got != "calc clock count web_search" {
		t.Errorf("an owner has %q", got)
	}
	if got := says("/groups off web", true, chat.User); got != "In a group chat only owners can switch tools." {
		t.Errorf("in a group: %q", got)
	}
	says("/groups off web", false, chat.User)
	d.set(t, Role, "user", `{"forced_category_states":{"web":true}}`)
	if got := names(d.kit(t, user)); got != "clock web_search" {
		t.Errorf("the owner forces what was switched off: %q", got)
	}
}

// What people read comes from the catalogue.
func TestAllFromCatalogue(t *testing.T) {
	d := newDesk(t)
	d.set(t, Global, "", `{"forced_category_states":{"data":true}}`)
	data := regexp.MustCompile("web_search|web|data|fetch|clock|`x`| x|x ")
	for _, text := range []string{"/groups", "/groups x", "/groups off web", "/groups on web", "/groups off data", "/groups off x"} {
		m := chat.Message{Text: text, At: user.At, From: user.From}
		got, err := d.Command(t.Context(), m, textstest.Wide().Tools.Groups)
		if foreign := textstest.Foreign(got, data); err != nil || foreign != "" {
			t.Errorf("%s: %q %v", text, foreign, err)
		}
	}
}
