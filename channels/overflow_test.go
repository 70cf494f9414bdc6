package channels_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/timetest"
	"parley/workspace"
)

const (
	restNote = "The rest is in the attached file."
	guest    = chat.Person("net:7")
)

// runaway is an answer that takes 40 messages of the fake network.
func runaway() chat.Reply {
	var words []string
	for i := range 40 {
		words = append(words, fmt.Sprintf("this is message number %02d of the answer", i))
	}
	r := reply("long", strings.Join(words, " "))
	r.For = guest
	return r
}

// overflowing gives m a workspace, and a network whose messages are as long as
// those of runaway.
func overflowing(t *testing.T, m *machine) *workspace.Workspace {
	t.Helper()
	files, err := workspace.Open(filepath.Join(t.TempDir(), "work"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	m.fake.Limit, m.fake.Every = 41, 500*time.Millisecond
	m.cfg.Files = files
	return files
}

// answers returns the names and the contents of all whole answers that are kept.
func answers(t *testing.T, files *workspace.Workspace) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"inbox/answers/*", "inbox/people/*/answers/*"} {
		paths, err := filepath.Glob(filepath.Join(files.Dir(), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := filepath.Rel(files.Dir(), path)
			all[name] = string(text)
		}
	}
	return all
}

// sentFiles returns the names of the files that m's network was sent.
func (m *machine) sentFiles() (names []string) {
	for _, op := range m.fake.Ops(channeltest.Send) {
		for _, f := range op.Reply.Files {
			names = append(names, f.Path)
		}
	}
	return names
}

// A runaway answer is ten messages and a file with all of it, which is for the
// person who asked. What is shown of it while it is made is no longer.
func TestOverflow(t *testing.T) {
	for _, who := range []chat.Person{guest, chat.TheOwner, ""} {
		in(t, func(t *testing.T, m *machine) {
			files := overflowing(t, m)
			h := m.start(edits)
			r := runaway()
			r.For = who
			text := r.Text
			r.Text = ""
			live := h.Live(t.Context(), r)
			stream(live, text, 10*time.Millisecond)
			if n := len(m.fake.Shown(room)); n == 0 || n > 9 {
				t.Errorf("%d messages are shown while the answer is made", n)
			}
			live.Close()
			r.Text = text
			send(t, h, r)
			h.drain()
			shown := m.fake.Shown(room)
			if len(shown) != 11 || shown[0] != "this is message number 00 of the answer" || shown[9] != restNote {
				t.Fatalf("the chat shows %d messages: %q", len(shown), shown)
			}
			kept := answers(t, files)
			folder := who.InboxFolder()
			if who == "" { // nobody knows whose the chat is
				folder = chat.Person("net:1").InboxFolder()
			}
			for name, content := range kept {
				if content != text || !strings.HasPrefix(name, folder+"/answers/") || !strings.HasSuffix(name, ".md") {
					t.Errorf("%s holds %d bytes of %d", name, len(content), len(text))
				}
				if got := m.sentFiles(); !slices.Equal(got, []string{name}) {
					t.Errorf("sent %q, want %q", got, name)
				}
			}
			if len(kept) != 1 {
				t.Errorf("%d files are kept", len(kept))
			}
			m.clean()
		})
	}
}

// What takes ten messages is no runaway answer.
func TestNoOverflow(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		files := overflowing(t, m)
		h := m.start(channeltest.Splits)
		r := runaway()
		r.Text = r.Text[:10*len("this is message number 00 of the answer ")-1]
		send(t, h, r)
		h.drain()
		if shown := m.fake.Shown(room); len(shown) != 10 || strings.Contains(shown[9], "rest") || len(answers(t, files)) > 0 {
			t.Errorf("the chat shows %q, kept are %v", shown, answers(t, files))
		}
	})
}

// The choices of a runaway question can be seen and pressed, and other files of
// an answer come after the rest of it.
func TestOverflowAsks(t *testing.T) {
	for _, powers := range []channeltest.Power{channeltest.Splits, channeltest.All} {
		in(t, func(t *testing.T, m *machine) {
			overflowing(t, m)
			m.fake.Limit = 80
			h := m.start(powers)
			r := runaway()
			r.Files = []chat.File{{Path: "plan.txt"}}
			r.Ask = &chat.Question{ID: "q1", Choices: []string{"Go", "Stop"}, Say: true}
			send(t, h, r)
			h.drain()
			ops := m.fake.Ops(channeltest.Send)
			if len(ops) != 12 {
				t.Fatalf("%d messages", len(ops))
			}
			last := ops[9].Reply
			if powers == channeltest.All && (last.Text != restNote || last.Ask == nil) {
				t.Errorf("no buttons: %+v", last)
			}
			if powers == channeltest.Splits && !strings.HasPrefix(last.Text, restNote) || powers == channeltest.Splits && !strings.Contains(last.Text, "2. Stop") {
				t.Errorf("no choices: %q", last.Text)
			}
			if !strings.Contains(ops[10].Reply.Files[0].Path, "/answers/") || ops[11].Reply.Files[0].Path != "plan.txt" {
				t.Errorf("files %+v, %+v", ops[10].Reply.Files, ops[11].Reply.Files)
			}
		})
	}
}

// A network that does not take the file has the person told where it is. The
// messages before are not held up by a disk that has no room for the file.
func TestOverflowRefused(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		files := overflowing(t, m)
		m.fake.Limit = 300
		m.on(refuseFiles)
		h := m.start(edits)
		r := runaway()
		r.Text = strings.Repeat(r.Text+" ", 10)
		inTheWay := filepath.Join(files.Dir(), guest.InboxFolder(), "answers")
		if err := errors.Join(os.MkdirAll(filepath.Dir(inTheWay), 0o700), os.WriteFile(inTheWay, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		send(t, h, r)
		timetest.Sleep(time.Minute)
		if shown := m.fake.Shown(room); len(shown) != 10 || len(m.sentFiles()) > 0 {
			t.Errorf("without room for the file, the chat shows %d messages", len(shown))
		}
		if err := os.Remove(inTheWay); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(10 * time.Minute)
		h.drain()
		kept := answers(t, files)
		shown := m.fake.Shown(room)
		for name, content := range kept {
			if content != r.Text || len(shown) != 11 || !strings.Contains(shown[10], "`"+name+"`") {
				t.Errorf("kept in %s, and the chat shows %q", name, shown[len(shown)-1])
			}
		}
		if len(kept) != 1 {
			t.Errorf("%d files are kept", len(kept))
		}
		parked, _ := h.DeadLetters().List(t.Context())
		if len(parked) > 0 {
			t.Errorf("parked: %+v", parked)
		}
		m.clean()
	})
}

func refuseFiles(op channeltest.Op) error {
	if op.Kind == channeltest.Send && len(op.Reply.Files) > 0 {
		return channels.ForGood("not enough rights to send documents to the chat")
	}
	return nil
}

// P9: whatever operation the process dies at while a runaway answer is sent,
// and again while it goes on, the same ten messages and the same file arrive,
// once where the network can tell, and the file is whole whenever it is sent.
func TestP9OverflowCrashAnywhere(t *testing.T) {
	for _, refused := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			for _, powers := range []channeltest.Power{channeltest.Splits | channeltest.Edits, channeltest.Splits | channeltest.Edits | channeltest.Traces} {
				for crash := 1; ; crash++ {
					deaths := 0
					in(t, func(t *testing.T, m *machine) { deaths = overflowCrash(t, m, powers, crash, late, refused) })
					if t.Failed() {
						t.Fatalf("powers %b, crash at operation %d, late %v, refused %v", powers, crash, late, refused)
					}
					if deaths == 0 {
						break
					}
				}
			}
		}
	}
}

// overflowCrash has a runaway answer sent by a process that dies at operation
// crash, and again three operations later, and returns how often it died.
func overflowCrash(t *testing.T, m *machine, powers channeltest.Power, crash int, late, refused bool) (deaths int) {
	files := overflowing(t, m)
	r := runaway()
	m.on(func(op channeltest.Op) error {
		if op.Kind == channeltest.Send && len(op.Reply.Files) > 0 {
			if kept := answers(t, files); len(kept) != 1 || kept[op.Reply.Files[0].Path] != r.Text {
				t.Errorf("%s is sent, and there are %d files", op.Reply.Files[0].Path, len(kept))
			}
		}
		if refused {
			return refuseFiles(op)
		}
		return nil
	})
	m.crash, m.late = crash, late
	for over := false; !over; {
		h := m.start(powers)
		over = h.Send(t.Context(), r) == nil && h.Send(t.Context(), reply("r2", "bye")) == nil
		if over {
			h.drain()
		}
		h.stop()
		if died := dead(m); died {
			over = false
			deaths++
			m.reboot(t.Context())
			if deaths == 1 {
				m.crash = m.ops + 3
			}
		}
	}
	synctest.Wait()
	most := 12
	if powers&channeltest.Traces == 0 {
		most += deaths
	}
	shown := m.fake.Shown(room)
	if len(shown) < 12 || len(shown) > most {
		t.Errorf("%d messages, want 12 to %d: %q", len(shown), most, shown)
	}
	told := slices.ContainsFunc(shown, func(s string) bool { return strings.Contains(s, "could not be sent") })
	repeated := len(shown) > 12 // the file, by another message
	if file := slices.Contains(shown, ""); !file && !told || file && told && !repeated || told && !refused {
		t.Errorf("file sent %v, told where it is %v: %q", file, told, shown)
	}
	if kept := answers(t, files); len(kept) != 1 {
		t.Errorf("%d files", len(kept))
	}
	return deaths
}

// P28: whole answers are kept for a month.
func TestP28AnswersArePruned(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		files := overflowing(t, m)
		h := m.start(edits)
		old, young := runaway(), runaway()
		old.For, young.ID = chat.TheOwner, "young"
		send(t, h, old, young)
		timetest.Sleep(time.Minute)
		kept := answers(t, files)
		for name := range kept {
			then := time.Now() // which is not the disk's
			if strings.HasPrefix(name, "inbox/answers/") {
				then = then.Add(-31 * 24 * time.Hour)
			}
			if err := os.Chtimes(filepath.Join(files.Dir(), name), then, then); err != nil {
				t.Fatal(err)
			}
		}
		timetest.Sleep(25 * time.Hour)
		left := answers(t, files)
		for name := range left {
			if strings.HasPrefix(name, "inbox/answers/") {
				t.Errorf("%s is still there", name)
			}
		}
		if len(kept) != 2 || len(left) != 1 {
			t.Errorf("%d files, then %d", len(kept), len(left))
		}
		h.stop()
	})
}
