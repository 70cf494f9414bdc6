package memory

import (
	"errors"
	"slices"
	"testing"

	"parley/chat"
	"parley/store"
)

// Point 5: people are those who said something and those whose memory was
// looked at, each once, and always the owner.
func TestPeople(t *testing.T) {
	a := newAttic(t)
	want := func(people ...chat.Person) {
		t.Helper()
		if all, err := a.notes().People(t.Context()); !slices.Equal(all, people) || err != nil {
			t.Errorf("People = %q, %v, want %q", all, err, people)
		}
	}
	want(chat.TheOwner)
	a.past.say(anna, "I drink tea.")
	a.past.say(chat.TheOwner, "So do I.")
	a.set(bert, memoryFile, "- coffee\n")
	a.set(anna, memoryFile, "- tea\n")
	want(chat.TheOwner, anna, bert)
	if err := a.mem.Close(); err != nil {
		t.Fatal(err)
	}
	if all, err := a.notes().People(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("People = %q, %v although the store is closed", all, err)
	}
}
