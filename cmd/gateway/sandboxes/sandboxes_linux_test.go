package sandboxes_test

import (
	"bytes"
	"log/slog"
	"testing"

	"parley/cmd/gateway/sandboxes"
	"parley/tools/sandbox"
)

// R-S16: what is used has been tried. Here it is a real kernel that is asked.
func TestChoice(t *testing.T) {
	for _, name := range []string{"auto", "landlock", "none"} {
		a := sandboxes.New(sandboxes.Config{Log: slog.New(slog.DiscardHandler), Folder: t.TempDir()})
		a.Use(name)
		choice, err := a.Examine(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if choice.Driver == "" || choice.Bare != (name == "none") || name != "auto" && choice.Driver != name {
			t.Errorf("%s: %+v", name, choice)
		}
		if name == "auto" && choice.Driver != "bwrap" && choice.Driver != "landlock" {
			t.Errorf("auto uses %s", choice.Driver)
		}
		if len(choice.Reports) != 2 {
			t.Errorf("%s: reports %v", name, choice.Reports)
		}
		var out bytes.Buffer
		o, err := a.Run(t.Context(), sandbox.Spec{Args: []string{"echo", "hello"}, Stdout: &out})
		if err != nil || o.Exit != 0 || out.String() != "hello\n" {
			t.Errorf("%s: %+v, %v, wrote %q", name, o, err, out.String())
		}
	}
}
