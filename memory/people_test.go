package memory

import (
	"context"
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
	err := a.disk.Names().WriteFile(fileOf("x:9", historyName), []byte(`{"cursor":1,"who":"x:8","text":"tea"}`+"\n")) // somebody else's (R-S14)
	if err != nil {
		t.Fatal(err)
	}
	want(chat.TheOwner, anna, bert)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err = range a.past.Since(gone, anna, 0) { // that not all was read is told
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Since: %v", err)
	}
	if err := a.mem.Close(); err != nil {
		t.Fatal(err)
	}
	if all, err := a.notes().People(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("People = %q, %v although the store is closed", all, err)
	}
}
