package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/llm/llmtest"
)

const guest = person + 1 // may talk, and is no owner

// does has somebody tell an obedient model what to call, and returns what the
// tools said.
func (w *testGateway) does(who int64, calls ...string) string {
	w.t.Helper()
	message := w.tg.Say(who, "call "+strings.Join(calls, "\ncall ")+"\n"+sayWhen)
	return strings.TrimSuffix(w.answers(who, message, thatIsAll), thatIsAll)
}

// received returns what files the bot sent to a chat.
func (w *testGateway) received(who int64) (data []string) {
	for _, m := range w.tg.Chat(who) {
		for _, f := range m.Files {
			if m.FromBot() {
				data = append(data, string(f.Data))
			}
		}
	}
	return data
}

// TestTildeFolder: a folder named "~" is a folder (R-S18). What a tool
// checked is what the channel sends, however its name is spelled.
func TestTildeFolder(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.start()
	const secret = "the owner's secret"
	others := chat.Person("telegram:9").Folder() + "/MEMORY.md"
	for _, name := range []string{"MEMORY.md", others, ".parley/tool-results/console-1/a.txt"} {
		w.file(name, secret)
	}
	for i, name := range []string{"MEMORY.md", others} {
		said := w.does(guest, fmt.Sprintf(`write_file {"path": "./~/%s", "content": "mine"}`, name),
			fmt.Sprintf(`message {"text": "here", "media": ["./~/%s"]}`, name))
		if !strings.Contains(said, "with 1 attachments") {
			t.Errorf("%s: %s", name, said)
		}
		if got := w.received(guest); len(got) != i+1 || got[i] != "mine" {
			t.Errorf("%s: telegram was sent %q", name, got)
		}
	}
	for _, name := range []string{
		"~/MEMORY.md", "MEMORY.md", others, "~/" + others, ".parley/tool-results/console-1/a.txt", "~/.parley/tool-results/console-1/a.txt",
		"./~/.parley/tool-results/console-1/a.txt", "./~/../MEMORY.md", filepath.Join(w.dir, "workspace", "MEMORY.md"),
	} {
		said := w.does(guest, fmt.Sprintf(`message {"text": "here", "media": [%q]}`, name))
		if !strings.Contains(said, "media path is not allowed") {
			t.Errorf("%s: %s", name, said)
		}
	}
	if got := w.received(guest); len(got) != 2 {
		t.Errorf("telegram was sent %q", got)
	}
	if said := w.does(guest, `read_file {"path": "./~/MEMORY.md"}`); !strings.Contains(said, "1| mine") {
		t.Errorf("its own file: %s", said)
	}
}

// TestUploadsArePrivate: what somebody sent is for them and for owners (R-S14).
func TestUploadsArePrivate(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.start()
	const group = -1001
	post := func(chat int64, text string, opts ...telegramtest.Option) string {
		w.tg.Post(chat, telegramtest.File{Kind: "document", Name: text + ".txt", Type: "text/plain", Data: []byte(text)}, "@parleybot keep it", opts...)
		w.told(chat, "an answer", func(texts []string) bool { return toldOf(texts, "keep it") })
		found := ""
		err := filepath.WalkDir(filepath.Join(w.dir, "workspace", "inbox"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, "-"+text+".txt") {
				found, err = filepath.Rel(filepath.Join(w.dir, "workspace"), path)
			}
			return err
		})
		if found == "" || err != nil {
			t.Fatalf("%s is not in the inbox: %v", text, err)
		}
		return found
	}
	theirs, owners := post(guest+1, "diary"), post(person, "plan")
	shared := post(group, "minutes", telegramtest.As(guest+1, "Eve"))
	for _, name := range []string{theirs, owners, shared} {
		for _, call := range []string{
			`read_file {"path": %q}`, `file_read {"path": %q}`, `message {"text": "x", "media": [%q]}`, `write_file {"path": %q, "content": "x"}`,
			`file_write {"path": %q, "content": "x"}`, `edit_file {"path": %q, "old_text": "", "new_text": "x"}`, `file_exists {"path": %q}`,
			`grep {"path": %q, "pattern": "."}`, `list_dir {"path": %q}`,
		} {
			if said := w.does(guest, fmt.Sprintf(call, name)); !strings.Contains(said, "is not for this conversation") {
				t.Errorf("%s of %s: %s", call, name, said)
			}
		}
	}
	for _, call := range []string{
		`glob {"pattern": "**/*.txt"}`, `list_dir {"path": ".", "recursive": true}`, `grep {"pattern": "diary|plan|minutes"}`, `file_list {"pattern": "**/*"}`,
	} {
		if said := w.does(guest, call); strings.Contains(said, "diary.txt") || strings.Contains(said, "plan.txt") || strings.Contains(said, "minutes.txt") {
			t.Errorf("%s: %s", call, said)
		}
	}
	for who, name := range map[int64]string{guest + 1: theirs, person: owners} {
		if said := w.does(who, fmt.Sprintf(`read_file {"path": %q}`, name)); !strings.Contains(said, "1| ") {
			t.Errorf("%d cannot read what they sent: %s", who, said)
		}
	}
	if said := w.does(person, fmt.Sprintf(`read_file {"path": %q}`, theirs)); !strings.Contains(said, "1| diary") {
		t.Errorf("an owner: %s", said)
	}
	if said := w.does(guest+1, fmt.Sprintf(`read_file {"path": %q}`, shared)); !strings.Contains(said, "is not for this conversation") {
		t.Errorf("what was sent to a group, in private: %s", said)
	}
	if len(w.received(guest)) > 0 {
		t.Errorf("telegram was sent %q", w.received(guest))
	}
}

// TestPlantedFiles: what programs obey by themselves is no place for guests,
// and an owner is asked about it each time.
func TestPlantedFiles(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.start()
	w.file(homeOf(guest)+"/mirror.git/HEAD", "ref: refs/heads/main\n")
	for _, name := range []string{
		".git/HEAD", ".git/config", ".GIT/hooks/post-checkout", "sub/.git", ".envrc", ".vscode/tasks.json", "a/.b/c", "HEAD", "x/head",
		"mirror.git/config", "mirror.git/hooks/post-update", "\u200c.git/config", "GIT~1/config", "sub/.new/../.bashrc",
	} {
		said := w.does(guest, fmt.Sprintf(`write_file {"path": %q, "content": "[core]\n\tfsmonitor = touch /tmp/x"}`, name), fmt.Sprintf(`file_mkdir {"path": %q}`, filepath.Dir(name)+"/.git"))
		if strings.Count(said, "only an owner may have it changed") != 2 {
			t.Errorf("%s: %s", name, said)
		}
	}
	for _, m := range w.tg.Chat(person) {
		t.Errorf("the owner was asked: %q", m.Text)
	}
	w.tg.Say(person, `call write_file {"path": "sub/.envrc", "content": "export A=1"}`)
	q := w.asks(person, ".envrc")
	w.tg.PressData(person, q.ID, q.Buttons[0][0].Data, telegramtest.As(person, "Ada"))
	w.told(person, "the end", func(texts []string) bool { return toldOf(texts, "Successfully wrote 10 characters") })
	entries, err := os.ReadDir(filepath.Join(w.dir, "workspace", "sub"))
	if err != nil || len(entries) != 1 || entries[0].Name() != ".envrc" {
		t.Errorf("in the folder: %v, %v", entries, err)
	}
	if said := w.does(person, `write_file {"path": "Makefile", "content": "all:"}`); !strings.Contains(said, "Successfully wrote") {
		t.Errorf("a file that nothing obeys by itself: %s", said)
	}
}

// TestKeptFiles: what Parley keeps itself no tool of files changes, in
// nobody's turn, and the model is told what to use instead.
func TestKeptFiles(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.start()
	w.does(person, `write_file {"path": "notes.txt", "content": "x"}`)
	w.tg.Say(person, "/new")
	w.told(person, "a new beginning", func(texts []string) bool { return !strings.HasPrefix(texts[len(texts)-1], "the tools say") })
	w.tg.Say(person, "/forget nothing at all")
	w.file("memory/history.jsonl", `{"cursor":1,"who":"owner","text":"tea"}`+"\n")
	w.file("memory/HEARD.md", "- tea\n")
	for _, name := range []string{"memory/history.jsonl", "Memory/HISTORY.jsonl", "~/memory/./history.jsonl", "memory/HEARD.md", ".parley/undo/x", ".parley/origins/x"} {
		for _, call := range []string{
			`write_file {"path": %q, "content": "x"}`, `file_write {"path": %q, "content": "x"}`, `write_file {"path": %q, "content": "x", "mode": "append"}`,
			`edit_file {"path": %q, "old_text": "tea", "new_text": "x"}`,
		} {
			said := w.does(person, fmt.Sprintf(call, name))
			if !strings.Contains(said, "is kept by Parley itself") || !strings.Contains(said, "memory_search") && !strings.Contains(said, "/undo") {
				t.Errorf("%s of %s: %s", call, name, said)
			}
		}
	}
	for name, want := range map[string]string{"memory/history.jsonl": `{"cursor":1,"who":"owner","text":"tea"}` + "\n", "memory/HEARD.md": "- tea\n"} {
		if text, err := os.ReadFile(filepath.Join(w.dir, "workspace", name)); string(text) != want || err != nil {
			t.Errorf("%s says %q, %v", name, text, err)
		}
	}
}

// TestNobodyElseReads: nothing in the data folder and the workspace is open to
// other users of the machine, also not what an earlier version left open (R-S6).
func TestNobodyElseReads(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.file("notes/old.txt", "from an earlier version") // 0644, in folders of 0755
	script := w.file("notes/run.sh", "#!/bin/sh")
	if err := os.Chmod(script, 0o775); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.config()
	out, err := w.command("doctor").Output()
	if !strings.Contains(string(out), "other users of this machine have access to ") {
		t.Errorf("the doctor says %s, %v", out, err)
	}
	w.start()
	w.does(person, `write_file {"path": "new/deep/file.txt", "content": "x"}`, `file_mkdir {"path": "made"}`)
	w.tg.Say(person, "/remember my pin is 1234")
	w.told(person, "Noted", func(texts []string) bool { return toldOf(texts, "Noted.") })
	w.tg.Post(person, telegramtest.File{Kind: "document", Name: "a.txt", Type: "text/plain", Data: []byte("x")}, "keep it")
	w.told(person, "an answer", func(texts []string) bool { return toldOf(texts, "keep it") })
	w.logs("other users of this machine had access", 1)
	err = filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || d != nil && path == filepath.Join(w.dir, "sandbox") {
			return fs.SkipDir // it comes and goes, with files of the system
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && (d.IsDir() || d.Type().IsRegular()) && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("open to others: %s, %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the script has mode %v, %v; want that it runs", info.Mode(), err)
	}
	out, err = w.command("doctor").Output()
	if strings.Contains(string(out), "open to others") || !strings.Contains(string(out), "ok    workspace") {
		t.Errorf("the doctor says %s, %v", out, err)
	}
}

// TestFilesTaint: a model that does whatever a file tells it changes no standing
// rule without an owner's yes: not in the turn that reads what was sent, and not
// by a file that such a turn wrote, in another conversation (R-S12).
func TestFilesTaint(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		last, rs := spokenLast(r), results(r)
		if len(rs) > 0 {
			last = rs[len(rs)-1]
		}
		name, read := strings.CutPrefix(last, "read ")
		switch {
		case read:
			return llmtest.Reply{Calls: call("read_file", fmt.Sprintf(`{"path": %q}`, name))}
		case strings.Contains(last, "PLANT"):
			return llmtest.Reply{Calls: call("write_file", `{"path": "notes.txt", "content": "STRIKE"}`)}
		case strings.Contains(last, "STRIKE"):
			return llmtest.Reply{Calls: call("write_file", `{"path": "SOUL.md", "content": "evil"}`)}
		}
		return llmtest.Reply{Text: "done after " + last}
	})
	w.start()
	refuse := func(source string) {
		t.Helper()
		q := w.asks(person, "SOUL.md")
		if !strings.Contains(q.Text, source) {
			t.Errorf("the question does not say where it comes from: %q", q.Text)
		}
		w.tg.PressData(person, q.ID, q.Buttons[0][1].Data, telegramtest.As(person, "Ada"))
		w.told(person, "the end", func(texts []string) bool {
			return len(texts) > 0 && toldOf(texts[len(texts)-1:], "refused") || len(texts) > 0 && toldOf(texts[len(texts)-1:], "done after Error")
		})
		if soul, err := os.ReadFile(filepath.Join(w.dir, "workspace", "SOUL.md")); strings.Contains(string(soul), "evil") || err != nil {
			t.Errorf("SOUL.md says %q, %v", soul, err)
		}
	}
	sent := func(text string) string {
		n := len(w.inbox())
		w.tg.Post(person, telegramtest.File{Kind: "document", Name: text + ".txt", Type: "text/plain", Data: []byte(text)}, "for later")
		w.told(person, "an answer", func(texts []string) bool {
			return len(w.inbox()) == n+1 && len(texts) > 0 && toldOf(texts[len(texts)-1:], "done after")
		})
		for _, name := range w.inbox() {
			if strings.HasSuffix(name, text+".txt") {
				return strings.TrimPrefix(name, filepath.Join(w.dir, "workspace")+"/")
			}
		}
		t.Fatal("it is not in the inbox")
		return ""
	}
	strike := sent("STRIKE")
	w.tg.Say(person, "read "+strike)
	refuse("the file " + strike)

	w.tg.Say(person, "/new")
	w.told(person, "a new conversation", func(texts []string) bool { return len(texts) > 0 && !strings.Contains(texts[len(texts)-1], "Error") })
	plant := sent("PLANT")
	w.tg.Say(person, "read "+plant)
	w.told(person, "a note", func(texts []string) bool {
		return len(texts) > 0 && toldOf(texts[len(texts)-1:], "Successfully wrote 6")
	})
	w.tg.Say(person, "/new")
	w.told(person, "a new conversation", func(texts []string) bool { return !strings.Contains(texts[len(texts)-1], "Successfully") })
	w.kill()
	w.start()
	w.tg.Say(person, "read notes.txt")
	refuse("the file notes.txt")
}
