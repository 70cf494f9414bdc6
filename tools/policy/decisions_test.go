package policy

import (
	"fmt"
	"testing"

	"parley/chat"
	"parley/store"
	"parley/tools"
)

// A turn reads nothing of the store while nobody decides anything, and each decision
// takes effect in the next turn.
func TestDecisionsAreKept(t *testing.T) {
	d := newDesk(t)
	if got := names(d.kit(t, user)); got != "clock fetch old_clock web_search" {
		t.Fatalf("a user has %q", got)
	}
	bucket := d.store.Bucket(store.BucketPolicy)
	if _, err := bucket.Put(t.Context(), "role/user", []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	if got := names(d.kit(t, user)); got != "clock fetch old_clock web_search" {
		t.Errorf("a user has %q: the policy was read again", got)
	}
	d.set(t, Role, "user", `{"forced_category_states":{"web":false}}`)
	if got := names(d.kit(t, user)); got != "clock old_clock" {
		t.Errorf("after a decision a user has %q", got)
	}
	if err := d.choose(t.Context(), user.Whose(), "data", false, true); err != nil {
		t.Fatal(err)
	}
	if got := names(d.kit(t, user)); got != "old_clock" && got != "" {
		t.Errorf("after a choice a user has %q", got)
	}
	d.set(t, Role, "user", `{"category_overrides":{"gone":{"tools":["fetch"]}},"forced_category_states":{"gone":false}}`)
	if k := d.kit(t, user); k.Has("fetch") {
		t.Errorf("a tool that was moved to a category that is off is offered: %q", names(k))
	}
	if err := d.Forget(t.Context(), "fetch"); err != nil {
		t.Fatal(err)
	}
	if k := d.kit(t, user); !k.Has("fetch") {
		t.Errorf("a tool that came after one that is gone is moved: %q", names(k))
	}
}

// What is read while somebody decides is not kept.
func TestDecisionsOfBeforeAreNotKept(t *testing.T) {
	var m memory
	reads := 0
	read := func() (*decisions, error) {
		if reads++; reads == 1 {
			m.forget() // somebody decides
		}
		return &decisions{}, nil
	}
	for range 3 {
		if _, err := m.get(read); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 2 {
		t.Errorf("%d reads, want 2: what the first one read is of before the decision", reads)
	}
}

// A source that withholds a tool from somebody who joins the turn is heard, whatever
// the policy says.
func TestSourceWithholdsTool(t *testing.T) {
	d := newDesk(t)
	theirs := tool("theirs", "web")
	theirs.Withheld = func(joined chat.Sender) bool { return joined.ID == user.From.ID }
	k, err := d.Kit(t.Context(), owner, tools.Rules{}.Permit(tools.Fixed{theirs}))
	if err != nil {
		t.Fatal(err)
	}
	c, _ := k.Tool("theirs")
	if c.May(user.From) || !c.May(owner.From) || !c.May(anna.From) {
		t.Error("the tool is not for those whom its source names")
	}
}

// The tools of a turn are copied once, and nothing is allocated for each of them.
func TestKitIsCopiedOnce(t *testing.T) {
	d := newDesk(t)
	var many tools.Fixed
	for i := range 50 {
		many = append(many, tool(fmt.Sprint("tool_", 50-i), "web"))
	}
	sources := tools.Rules{}.Permit(many[:20], many[20:])
	made := testing.AllocsPerRun(100, func() {
		if _, err := d.Kit(t.Context(), user, sources); err != nil {
			t.Fatal(err)
		}
	})
	if made > 30 {
		t.Errorf("%.0f allocations for a Kit of 50 tools", made)
	}
	t.Logf("%.0f allocations", made)
}
