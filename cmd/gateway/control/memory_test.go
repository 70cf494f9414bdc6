package control

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/memory"
	"parley/store/mem"
	"parley/tools"
	"parley/workspace"
)

// R-S14: a line that a tool wrote comes from the conversation of its call, and is marked if that was shown untrusted
// content; what was written by hand before is nobody's, and a tool that only reads is left alone.
func TestNoteMemory(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	log := slog.New(slog.DiscardHandler)
	versions := memory.NewVersions(w.Names(), mem.New(), log)
	notes := memory.Notes{Versions: versions, Past: memory.NewHistory(w, log), Zone: time.UTC}
	write := func(text string) error { return w.Names().WriteFile("MEMORY.md", []byte(text)) }
	if _, err := notes.Lines(t.Context(), chat.TheOwner); err != nil {
		t.Fatal(err)
	}
	if err := write("- by hand\n"); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("cut off")
	tool := NoteMemory(versions, log)(tools.Tool{Run: func(context.Context, tools.Call) (tools.Result, error) {
		return tools.Result{}, errors.Join(failure, write("- by hand\n- by the agent\n"))
	}})
	at := chat.Address{Channel: "web", Chat: "owner"}
	c := tools.Call{ToolCall: llm.ToolCall{Name: "edit_file", Args: `{"file_path":"Memory.md"}`}}
	c.Scope = tools.Scope{Session: at.Session(), At: at, From: chat.Sender{Role: chat.Owner}, Tainted: true}
	if _, err := tool.Run(t.Context(), c); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	all, err := notes.Lines(t.Context(), chat.TheOwner)
	if err != nil || len(all.Lines) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if l := all.Lines[0]; l.Untrusted || l.Origin == nil || l.Origin.Session != "" {
		t.Errorf("by hand: %+v, %+v", l, l.Origin)
	}
	if l := all.Lines[1]; !l.Untrusted || l.Origin == nil || l.Origin.Session != at.Session() {
		t.Errorf("by the agent: %+v, %+v", l, l.Origin)
	}
	reads := NoteMemory(versions, log)(tools.Tool{Hints: tools.Hints{ReadOnly: true}, Run: tool.Run})
	c.Args = `{"file_path":"notes.txt"}`
	for _, run := range []func(context.Context, tools.Call) (tools.Result, error){reads.Run, tool.Run} {
		if _, err := run(t.Context(), c); !errors.Is(err, failure) {
			t.Error(err)
		}
	}
}
