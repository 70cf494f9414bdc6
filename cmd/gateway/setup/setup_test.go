package setup

import (
	"strings"
	"testing"
)

// TestNext: nobody is told to do what is done, or to change lines that are not there.
func TestNext(t *testing.T) {
	const (
		model   = "Name a model"
		remove  = "remove the //"
		add     = `add "telegram": {`
		running = "Run: parley doctor --data d, then: parley --data d"
	)
	for n, want := range map[Next][]string{
		{Commented: true}:             {"1. " + model, "2. Connect Telegram", remove, "3. " + running},
		{}:                            {"1. " + model, "2. Connect Telegram", add, "3. " + running},
		{Model: true}:                 {"1. Connect Telegram", add, "2. " + running},
		{Telegram: true}:              {"1. " + model, "2. " + running},
		{Model: true, Telegram: true}: {"1. " + running},
	} {
		n.Config, n.Flags = "/x/config.json", " --data d"
		var b strings.Builder
		if err := n.Print(&b); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{model, "Connect Telegram", remove, add, running} {
			wanted := strings.Contains(strings.Join(want, "\n"), text)
			if strings.Contains(b.String(), text) != wanted {
				t.Errorf("%+v: %q is wanted: %v\n%s", n, text, wanted, b.String())
			}
		}
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%+v: no %q\n%s", n, text, b.String())
			}
		}
	}
}
