package admission_test

import (
	"strings"
	"testing"

	"parley/channels/admission"
	"parley/chat"
)

// R-S7: ids only, nobody by default, blanks refused, whole channel names.
func TestRS7Access(t *testing.T) {
	a, err := admission.NewRules(
		[]string{"telegram:1", "telegram:work:2", "console"},
		map[string][]string{"telegram": {"3"}, "telegram:work": {}, "discord": {"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		channel, id string
		want        chat.Role
	}{
		{"telegram", "1", chat.Owner},
		{"telegram", "3", chat.User},
		{"telegram", "4", chat.Unknown},
		{"telegram", "", chat.Unknown},
		{"telegram", "*", chat.Unknown},
		{"telegram", " 3", chat.Unknown},
		{"telegram:work", "1", chat.Unknown},
		{"telegram:work", "2", chat.Owner},
		{"telegram:work", "3", chat.Unknown},
		{"telegram:spare", "3", chat.Unknown},
		{"discord", "9", chat.User},
		{"discord", "", chat.Unknown},
		{"console", "", chat.Owner},
		{"web", "1", chat.Unknown},
	} {
		if got := a.Role(c.channel, c.id); got != c.want {
			t.Errorf("%s:%s is %q, want %q", c.channel, c.id, got, c.want)
		}
	}
	if ws := a.Warnings(); len(ws) != 1 || !strings.Contains(ws[0], `channels.discord.allow has "*"`) {
		t.Errorf("warnings: %q", ws)
	}
	if (admission.Rules{}).Role("console", "1") != chat.Unknown {
		t.Error("the zero Access lets somebody in")
	}
	open, err := admission.NewRules([]string{"telegram"}, nil)
	if ws := open.Warnings(); err != nil || len(ws) != 1 {
		t.Errorf("a whole network of owners: %q, %v", ws, err)
	}
}

func TestRS7BlanksRefused(t *testing.T) {
	_, err := admission.NewRules([]string{"", "telegram:", "telegram:*", "*", "a b"}, map[string][]string{"telegram": {"1", " ", "2\n"}})
	if err == nil {
		t.Fatal("blanks were taken")
	}
	for _, want := range []string{"owners: entry 1", `"telegram:"`, `"telegram:*"`, `"*"`, "owners: entry 5", "channels.telegram.allow: entry 2", "channels.telegram.allow: entry 3"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}
