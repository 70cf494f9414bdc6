package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/llm"
	"parley/llm/llmtest"
)

// TestConversation is the main job: a person asks on Telegram, the answer is
// streamed into the chat, a tool is used, and the answer is given.
func TestConversation(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		switch rs := results(r); {
		case len(rs) > 0:
			return llmtest.Reply{Text: "I wrote it down: " + rs[0], Piece: 2, Pause: 40 * time.Millisecond}
		case strings.Contains(r.Last(), "Remember"):
			return llmtest.Reply{Text: "One moment, please.", Pause: 20 * time.Millisecond, Calls: []llm.ToolCall{
				{ID: "a", Name: "write_file", Args: `{"file_path": "notes.md", "content": "milk\n"}`},
			}}
		}
		return llmtest.Reply{Text: "You said: **" + strings.Join(spoken(r), " ") + "**"}
	})
	w.start()
	w.tg.Say(person, "Hello!")
	w.says(person, "You said: Hello!")
	w.tg.Say(person, "Remember: milk")
	texts := w.told(person, "the note", func(texts []string) bool {
		return strings.HasSuffix(texts[len(texts)-1], "notes.md") || strings.Contains(texts[len(texts)-1], "bytes")
	})
	if !strings.HasPrefix(texts[len(texts)-1], "One moment, please.\n\nI wrote it down: ") {
		t.Errorf("the bot said %q", texts)
	}
	b, err := os.ReadFile(filepath.Join(w.dir, "workspace", "notes.md"))
	if err != nil || string(b) != "milk\n" {
		t.Errorf("the file: %q, %v", b, err)
	}
	ms := w.tg.Chat(person)
	if last := ms[len(ms)-1]; len(last.Edits) == 0 {
		t.Error("the answer was not streamed")
	}
	if code := w.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if why := w.llm.Refused(); len(why) > 0 {
		t.Errorf("the provider refused: %q", why)
	}
}

// TestGroupsAndTopics: in a group the bot answers who addresses it, in the
// topic where it was asked, and each topic is a conversation of its own.
func TestGroupsAndTopics(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "heard " + strings.Join(spoken(r), ", ") + " of " + r.Messages[1].Content[strings.Index(r.Messages[1].Content, "\n")+1:]}
	})
	w.start()
	const group = -1001
	w.tg.Say(group, "talking among ourselves")
	w.tg.Say(group, "@parleybot one")
	w.says(group, "heard one of one")
	w.tg.Say(group, "@parleybot two", telegramtest.InTopic(5))
	w.says(group, "heard two of two")
	ms := w.tg.Chat(group)
	if last := ms[len(ms)-1]; last.Thread != 5 || last.ReplyTo != 4 {
		t.Errorf("the answer is in topic %d, in reply to %d", last.Thread, last.ReplyTo)
	}
}

// TestCommandsEverywhere: the commands work on Telegram and in the terminal.
func TestCommandsEverywhere(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "hi", Usage: &llm.Usage{In: 12, Out: 3}}
	})
	w.start()
	w.tg.Say(person, "hello")
	w.says(person, "hi")
	w.tg.Say(person, "/usage")
	w.says(person, "Tokens used in this conversation:\nmain: 12 in (0 from cache), 3 out\n\n"+
		"Today, until midnight (UTC):\n• you: 15 of 20,000,000 tokens, 0 of 100 background tasks\n• everybody together: 15 of 100,000,000 tokens, 0 of 2,000 megabytes")
	w.tg.Say(person, "/new@parleybot")
	w.says(person, "A new conversation. What is on your mind?")
	if out, code := w.run("", "chat", "-m", " \n"); code != exitUsage {
		t.Errorf("nothing to say: exit code %d, output %q", code, out)
	}
	out, code := w.run("", "chat", "-m", "/help")
	if code != 0 || !strings.Contains(out, "/retry") {
		t.Errorf("exit code %d, output %q", code, out)
	}
	if help, table := commandsIn(out, helpLine), commandsIn(pages(t)["README.md"], tableRow); len(table) < 20 || !maps.Equal(help, table) {
		t.Errorf("/help has %v\nthe README has %v", help, table)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	if err := w.tg.Wait(ctx, func(v telegramtest.View) bool { return v.Count("setMyCommands") > 0 }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "stop", "status", "help", "model", "retry", "usage"} {
		if !strings.Contains(w.tg.Commands(), `"`+name+`"`) {
			t.Errorf("the menu lacks /%s: %s", name, w.tg.Commands())
		}
	}
}

// How /help and the README list commands: in a list, and in a table.
var (
	helpLine = regexp.MustCompile(`(?m)^(/[a-z].*?) – (.*)$`)
	tableRow = regexp.MustCompile("(?m)^\\| (`/[a-z].*?) \\| (.*) \\|$")
	slashed  = regexp.MustCompile(`/([a-z]+)`)
)

// commandsIn returns the commands of lines of that form, and whether each is marked as one for owners.
func commandsIn(text string, line *regexp.Regexp) map[string]bool {
	all := map[string]bool{}
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		for _, name := range slashed.FindAllStringSubmatch(m[1], -1) {
			all[name[1]] = all[name[1]] || strings.HasSuffix(m[2], "(owners)")
		}
	}
	return all
}

// grep fails the test if what must not be kept or shown is in the log or in a file.
func (w *testGateway) grep(secret string) {
	w.t.Helper()
	if strings.Contains(w.log.String(), secret) {
		w.t.Errorf("%q is in the log", secret)
	}
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), secret) {
			w.t.Errorf("%q is in %s", secret, path)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestNoSecretLeaks is R-S17 and R-S26: with everything around it failing and
// a model that asks for them, neither token nor key is seen anywhere.
func TestNoSecretLeaks(t *testing.T) {
	t.Parallel()
	n := 0
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		switch n++; {
		case len(results(r)) > 0:
			return llmtest.Reply{Text: strings.Join(results(r), "\n")}
		case n == 1:
			return llmtest.Reply{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + canaryKey + `."}}`}
		}
		return llmtest.Reply{Calls: []llm.ToolCall{
			{ID: "1", Name: "read_file", Args: `{"path": "/proc/self/environ"}`},
			{ID: "2", Name: "read_file", Args: `{"path": "../config.json"}`},
			{ID: "3", Name: "read_file", Args: `{"path": "../parley.db"}`},
			{ID: "4", Name: "list_dir", Args: `{"path": ".."}`},
			{ID: "5", Name: "read_file", Args: `{"path": "innocent.txt"}`},
		}}
	})
	w.start()
	w.tg.Fail("getUpdates", telegramtest.Fault{DropBefore: true})
	w.tg.Fail("sendMessage", telegramtest.Fault{DropBefore: true})
	w.tg.Say(person, "hi")
	w.told(person, "an apology", func(texts []string) bool { return len(texts) == 1 })
	if err := os.Link(filepath.Join(w.dir, "config.json"), filepath.Join(w.dir, "workspace", "innocent.txt")); err != nil {
		t.Fatal(err)
	}
	w.tg.Say(person, "what do you see?")
	texts := w.told(person, "a report", func(texts []string) bool { return len(texts) == 2 })
	if strings.Contains(texts[1], "TOWN_BOT_TOKEN") {
		t.Errorf("the config was read through a link: %q", texts[1])
	}
	environ, err := os.ReadFile("/proc/" + itoa(w.proc.cmd.Process.Pid) + "/environ")
	if err == nil && strings.Contains(string(environ), canaryKey) {
		t.Error("the key is in the environment that other processes can read")
	}
	w.stop()
	_, secret, _ := strings.Cut(w.tg.Token(), ":")
	for _, s := range []string{canaryKey, secret} {
		w.grep(s)
		for _, text := range botTexts(w.tg.Chat(person)) {
			if strings.Contains(text, s) {
				t.Errorf("the person was shown %q in %q", s, text)
			}
		}
		for _, r := range w.llm.Requests() {
			if strings.Contains(string(r.Body), s) {
				t.Errorf("the model was shown %q", s)
			}
		}
	}
}

// TestNoSecretLeaksByItself is R-S26 of subagents and dreams: what a provider says
// that quotes the key back is kept, shown and passed on without it.
func TestNoSecretLeaksByItself(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if isFromSubagent(r) || dreams(r) {
			return llmtest.Reply{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + canaryKey + `."}}`}
		}
		return mindful(ctx, r)
	})
	w.start()
	s := w.telegramSpot()
	s.asks(`call multi_agent {"tasks": [{"name": "a", "instruction": "b"}]}`, "Incorrect API key provided: [key].")
	s.asks("fact: the tide turns at noon.", "heard fact")
	s.asks("/dream", "I am going over my memory.")
	w.dreamt()
	s.asks("/cron history dream", "Incorrect API key provided: [key].")
	w.stop()
	w.grep(canaryKey)
	for _, r := range w.llm.Requests() {
		if strings.Contains(string(r.Body), canaryKey) {
			t.Error("a model was shown the key")
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
