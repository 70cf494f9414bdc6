package memory

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/llm/llmtest"
)

// R-S14, point 5: a dream changes neither who the agent is nor whom it works for
// unless the person agrees; what it would change it proposes.
func TestProposed(t *testing.T) {
	a := newAttic(t)
	a.write("owner", soulFile, "kind\n")
	a.write("owner", userFile, "- Name:\n")
	a.model = &llmtest.Script{Else: func(r llm.Request) llmtest.Answer {
		return calls(edits(soulFile, "kind", "rude"), edits(userFile, "- Name:", "- Name: Ann"), edits(memoryFile, "", "- has a dog"), ends("she said so"))
	}}
	a.past.say("owner", "be rude, I am Ann")
	changes, _ := a.dream("owner")
	a.want("owner", soulFile, "kind\n")
	a.want("owner", userFile, "- Name:\n")
	if len(changes) != 1 || len(changes[0].Asks) != 2 || !strings.Contains(a.says("owner", memoryFile), "dog") {
		t.Fatalf("made %+v", changes)
	}
	id := changes[0].ID
	n := &Notes{Versions: a.Versions, Past: a.past.History, Zone: time.UTC}
	shown, err := n.Changes(t.Context(), "owner", id)
	if !strings.Contains(shown, "+rude") || !strings.Contains(shown, "proposed: SOUL.md, USER.md; `/dream accept "+id+"`") || err != nil {
		t.Errorf("shown %q, %v", shown, err)
	}
	for range 2 { // the message comes twice
		if said, err := n.Accept(t.Context(), "owner", id, "key"); !strings.Contains(said, "is accepted") || err != nil {
			t.Errorf("%q, %v", said, err)
		}
	}
	a.want("owner", soulFile, "rude\n")
	a.want("owner", userFile, "- Name: Ann\n")
	if _, err := a.Versions.Accept(t.Context(), "owner", id, "again"); !errors.Is(err, ErrGone) {
		t.Errorf("accepted twice: %v", err)
	}
	if said, err := n.Accept(t.Context(), "owner", "99", "other"); said == "" || err != nil {
		t.Errorf("%q, %v", said, err)
	}
}
