package main

import (
	"strings"
	"sync"
	"testing"
)

// What an owner must approve is asked in their chat, and is not approved by the program that had the agent do it:
// a model may lead that.
func TestMCPClientApprovesNothing(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.start()
	w.tg.Say(person, "hello")
	w.says(person, "heard hello")
	c := mustDial(t, w.base(), w.key("owner"), "")
	do := func(message string) string {
		return c.do("ask_agent", map[string]any{"message": message, "session": "s"})["answer"].(string)
	}
	do(`call write_file {"path": "keep.txt", "content": "x"}`)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if got := do(`call file_delete {"path": "keep.txt"}`); strings.Contains(got, "Error") {
			t.Error(got)
		}
	})
	q := w.asks(person, "keep.txt")
	waiting.Go(func() { do("Yes") })
	if got := c.do("ask_agent", map[string]any{"message": `call read_file {"path": "keep.txt"}`})["answer"]; strings.Contains(got.(string), "not found") {
		t.Errorf("the client approved its own call: %s", got)
	}
	w.tg.PressData(person, q.ID, q.Buttons[0][0].Data)
	waiting.Wait()
}
