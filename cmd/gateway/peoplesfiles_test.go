package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels/telegram/telegramtest"
	"parley/chat"
)

// TestFilesOfPeople checks that each person and group works in a folder of their own,
// which nobody else's turns reach but owners', and sees what is shared (A-021, A-024,
//
func TestFilesOfPeople(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	const group = -1001
	w.more["shared"] = []map[string]any{
		{"folder": "recipes", "read": []string{"everyone"}, "write": []string{fmt.Sprintf("telegram:%d", guest)}},
	}
	w.file("notes.md", "the owner's notes")
	w.file("recipes/soup.md", "peas and water")
	w.start()

	for who, notes := range map[int64]string{guest: "Eve's notes", guest + 1: "Bob's notes"} {
		said := w.does(who, `list_dir {}`, fmt.Sprintf(`write_file {"path":"notes.md","content":%q}`, notes),
			`read_file {"path":"notes.md"}`, `glob {"pattern":"**"}`, `grep {"pattern":"notes"}`)
		if !strings.Contains(said, "recipes/ (shared") || !strings.Contains(said, "1| "+notes) {
			t.Errorf("%d: %s", who, said)
		}
		if strings.Contains(said, "the owner's") || strings.Contains(said, "people/") {
			t.Errorf("%d sees more than is theirs: %s", who, said)
		}
		if got := w.fileText(homeOf(who) + "/notes.md"); got != notes {
			t.Errorf("%d: the file has %q", who, got)
		}
	}
	for _, name := range []string{
		"../../notes.md", homeOf(guest+1) + "/notes.md", "../" + filepath.Base(homeOf(guest+1)) + "/notes.md",
		filepath.Join(w.dir, "workspace", "notes.md"), filepath.Join(w.dir, "workspace", homeOf(guest+1), "notes.md"), "USER.md",
	} {
		said := w.does(guest, fmt.Sprintf(`read_file {"path":%q}`, name), fmt.Sprintf(`message {"text":"here","media":[%q]}`, name))
		if strings.Contains(said, "owner's") || strings.Contains(said, "Bob's") || len(w.received(guest)) > 0 {
			t.Errorf("%s: %s", name, said)
		}
	}

	said := w.does(guest+1, `read_file {"path":"recipes/soup.md"}`, `write_file {"path":"recipes/soup.md","content":"poison"}`)
	if !strings.Contains(said, "peas and water") || !strings.Contains(said, "can be read here, but not changed") {
		t.Errorf("who may read what is shared: %s", said)
	}
	w.does(guest, `write_file {"path":"recipes/soup.md","content":"carrots"}`)
	if got := w.fileText("recipes/soup.md"); got != "carrots" {
		t.Errorf("who may write what is shared: %q", got)
	}
	w.tg.Say(guest, "/undo")
	w.told(guest, "that it is undone", func(texts []string) bool { return strings.HasPrefix(texts[len(texts)-1], "Undone:") })
	if got := w.fileText("recipes/soup.md"); got != "peas and water" {
		t.Errorf("after /undo: %q", got)
	}

	if said := w.does(person, `read_file {"path":"notes.md"}`, `read_file {"path":"`+homeOf(guest)+`/notes.md"}`); !strings.Contains(said, "the owner's notes") || !strings.Contains(said, "Eve's notes") {
		t.Errorf("an owner: %s", said)
	}
	w.tg.Say(group, "@parleybot call write_file {\"path\":\"notes.md\",\"content\":\"ours\"}", telegramtest.As(person, "Ada"))
	w.told(group, "an answer", func(texts []string) bool {
		return len(texts) > 0 && strings.Contains(texts[len(texts)-1], "Successfully")
	})
	if got := w.fileText(homeOf(group) + "/notes.md"); got != "ours" || w.fileText("notes.md") != "the owner's notes" {
		t.Errorf("a group's file: %q", got)
	}
}

// homeOf returns the folder of the workspace with the files of a person or a group on
// Telegram.
func homeOf(id int64) string { return chat.Person(fmt.Sprintf("telegram:%d", id)).Home() }

// fileText returns the content of a file of the workspace.
func (w *testGateway) fileText(name string) string {
	text, err := os.ReadFile(filepath.Join(w.dir, "workspace", name))
	if err != nil {
		w.t.Error(err)
	}
	return string(text)
}
