package demo_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/channels/greeting"
	"parley/llm"
	"parley/llm/demo"
	"parley/llm/llmtest"
)

// A talk is a conversation with the demo, with tools that return what results says.
type talk struct {
	t       *testing.T
	system  string
	results map[string]string
	history []llm.Message
}

// say returns what the demo answers, and the buttons below.
func (k *talk) say(text string) (answer string, buttons []string) {
	k.t.Helper()
	k.history = append(k.history, llm.Message{Role: llm.User, Text: text})
	for range 5 {
		req := llm.Request{System: k.system, Messages: k.history, Tools: allTools}
		msg, err := demo.New("demo").Generate(k.t.Context(), req, nil)
		if err != nil {
			k.t.Fatal(err)
		}
		k.history = append(k.history, msg)
		if msg.Finish == llm.Stopped {
			return answer + msg.Text, buttons
		}
		for _, call := range msg.Calls {
			var in struct {
				Name, Text string
				Buttons    []string
			}
			if err := json.Unmarshal([]byte(call.Args), &in); err != nil {
				k.t.Fatal(err)
			}
			tool := call.Name
			if tool == "call_tool" {
				tool = in.Name
			}
			if tool == "message" {
				answer += in.Text
				buttons = append(buttons, in.Buttons...)
			}
			k.history = append(k.history, llm.Message{Role: llm.ToolRole, Call: call.ID, Name: call.Name, Text: k.results[tool]})
		}
	}
	k.t.Fatalf("%q has no end", text)
	return "", nil
}

// What tools return is told in words, errors kindly, and the next things to try are
// buttons: those that were not tried.
func TestTellsResults(t *testing.T) {
	noSearch := "Error: web search is not available: duckduckgo: cannot be reached\n\n[Analyze the error above.]"
	for _, c := range []struct{ say, tool, result, want, button string }{
		{"what can you do?", "", "", "remind me in a minute", "Remind me in a minute to stretch"},
		{"Hello!", "", "", "models", "Every 10 seconds say hi"},
		{"calculate 2^10", "calculator", `{"success":true,"data":{"result":1024},"error":null}`, "`2**10` is **1024**.", ""},
		{"calculate 1/0", "calculator", "Error: division by zero\n\n[Analyze the error above.]", "did not work: division by zero.", ""},
		{"every 10 seconds say hi", "cron", "Created job 'hi' (id: 1)", "every 10 seconds", "Stop saying hi"},
		{"stop saying hi", "cron", "Removed job 1", "will not come again", ""},
		{"remind me in a minute to stretch", "cron", "Created job", "remind you", "Every 10 seconds say hi"},
		{"every day at 9 sing", "cron", "Created job", "on the schedule", ""},
		{"write a note: x", "write_file", "ok", "**notes.md**", "Read notes.md"},
		{"read notes.md", "read_file", "1| - x\n2| - y\n\n(End of file — 2 lines total)", "**notes.md**:\n\n- x\n- y", "Delete notes.md"},
		{"read no.md", "read_file", "Error: File not found: no.md", "did not work: File not found: no.md.", ""},
		{"delete notes.md", "file_delete", `{"success":true}`, "**notes.md** is gone", ""},
		{"list my files", "list_dir", "📄 a\n📁 b\n", "- 📄 a\n- 📁 b", ""},
		{"remember that I like tea", "write_file", "ok", "MEMORY.md", ""},
		{"what do you know about me?", "read_file", "1| - I like tea", "remember:\n\n- I like tea", ""},
		{"what do you know about me?", "read_file", "Error: File not found: MEMORY.md", "nothing about you yet", ""},
		{"in the background list my files", "spawn", "started", "in the background", ""},
		{"search for bread", "web_search", "1. Bread", "1. Bread", ""},
		{"list my files", "list_dir", "Directory . is empty", "My folder is empty so far", ""},
		{"list files in docs", "list_dir", "Directory docs is empty", "**docs** is empty.", ""},
		{"tell me the weather in Oslo", "get_weather",
			`{"success":true,"data":{"city":"Oslo","temperature":-3.2,"humidity":81,"description":"snow","simulated":false},"error":null}`,
			"Oslo: snow, -3 °C, humidity 81 %.", ""},
		{"tell me the weather in Oslo", "get_weather",
			`{"success":true,"data":{"city":"Oslo","temperature":22,"humidity":65,"description":"sunny","simulated":true},"error":null}`,
			"humidity 65 %. That is made up: with `\"weather\"", ""},
		{"tell me the weather in Oslo", "get_weather", `{"success":false,"data":null,"error":"weather of Oslo: no such city"}`,
			"That did not work: weather of Oslo: no such city.", ""},
		{"search for bread", "web_search", noSearch, "search the web from here: web search is not available: duckduckgo: cannot be reached. Parley", ""},
	} {
		k := &talk{t: t, results: map[string]string{c.tool: c.result}}
		got, buttons := k.say(said + "]\n" + c.say)
		if !strings.Contains(got, c.want) || !strings.Contains(got, demo.Notice) {
			t.Errorf("%q: got %q, want %q in it", c.say, got, c.want)
		}
		if len(buttons) == 0 || len(buttons) > 3 || c.button != "" && !slices.Contains(buttons, c.button) {
			t.Errorf("%q: buttons %q, want %q among them", c.say, buttons, c.button)
		}
		isSame := func(b string) bool { return strings.EqualFold(b, c.say) }
		if slices.ContainsFunc(buttons, isSame) {
			t.Errorf("%q: buttons %q, which were tried", c.say, buttons)
		}
	}
}

// People who are no owners cannot set a key nor change the config, and are not told to. What they are to be remembered by
// is in a file of their own, with short instructions, too.
func TestGuests(t *testing.T) {
	made := `{"success":true,"data":{"city":"Oslo","temperature":22,"humidity":65,"description":"sunny","simulated":true},"error":null}`
	for _, system := range []string{
		"In your workspace, AGENTS.md, SOUL.md, people/anna/USER.md, TOOLS.md hold these instructions, people/anna/MEMORY.md what you remember.",
		"Rules are in AGENTS.md, people/anna/USER.md is about the person, and what you remember belongs in people/anna/MEMORY.md. More.",
	} {
		k := &talk{t: t, system: system, results: map[string]string{
			"web_search": "Error: web search is not available", "get_weather": made, "list_dir": "Directory . is empty",
		}}
		for _, say := range []string{
			"hello", "what can you do?", "search for bread", "tell me the weather in Oslo", "list my files", "tell me the weather", "so it goes",
		} {
			got, _ := k.say(said + "]\n" + say)
			if strings.Contains(got, "OPENAI") || strings.Contains(got, "config") {
				t.Errorf("%q: a guest is told %q", say, got)
			}
			if first := say == "hello"; strings.Contains(got, demo.GuestNotice) != first {
				t.Errorf("%q: got %q", say, got)
			}
			if strings.Contains(say, "do?") && !strings.Contains(got, "Whoever runs this Parley") {
				t.Errorf("%q: got %q", say, got)
			}
		}
		k.say(said + "]\nremember that I like tea")
		if calls := k.history[len(k.history)-5].Calls; len(calls) != 1 || !strings.Contains(calls[0].Args, `"path":"people/anna/MEMORY.md"`) {
			t.Errorf("remembered by %+v", k.history[len(k.history)-5:])
		}
	}
}

// Whoever presses the buttons, or types their numbers, sees all that there is, and is
// told once that this is a demo. Each button is understood.
func TestTour(t *testing.T) {
	k := &talk{t: t, results: map[string]string{}}
	answer, buttons := k.say(said + "]\nwhat can you do?")
	for n := range 30 {
		if n > 0 && strings.Contains(answer, demo.Notice) {
			t.Errorf("the notice came again: %q", answer)
		}
		if strings.Contains(answer, "You said") || len(buttons) == 0 {
			t.Fatalf("after %d: %q, buttons %q", n, answer, buttons)
		}
		press := buttons[len(buttons)-1] // the last that is new
		if press == "What can you do?" {
			break
		}
		if n%2 == 0 {
			press = fmt.Sprint(len(buttons))
		}
		answer, buttons = k.say(said + "]\n" + press)
	}
	var tried []string
	for _, m := range k.history {
		for _, c := range m.Calls {
			tried = append(tried, c.Name+" "+c.Args)
		}
	}
	for _, tool := range []string{"cron", "calculator", "write_file", "list_dir", "read_file", "spawn", "web_search"} {
		if !strings.Contains(strings.Join(tried, "\n"), tool) {
			t.Errorf("%s was never tried:\n%s", tool, strings.Join(tried, "\n"))
		}
	}
}

// What newcomers are offered to press is understood, and nothing of it goes on for ever.
func TestUnderstandsTheGreeting(t *testing.T) {
	for _, words := range greeting.Suggestions() {
		k := &talk{t: t, results: map[string]string{}}
		if got, buttons := k.say(said + "]\n" + words); strings.Contains(got, "You said") || buttons == nil {
			t.Errorf("%q: got %q", words, got)
		}
		for _, m := range k.history {
			for _, made := range m.Calls {
				if made.Name == "cron" && !strings.Contains(made.Args, `"at":`) {
					t.Errorf("%q makes a job that goes on: %s", words, made.Args)
				}
			}
		}
	}
}

// What the gateway sends is answered without buttons and notice. What is to be said is
// said, whatever it means, and not done.
func TestAnswersTheGateway(t *testing.T) {
	long := strings.Repeat("drink some water and ", 9) + "smile"
	for _, c := range []struct{ from, say, want string }{
		{"schedule", "Reminder: stretch", "⏰ stretch"},
		{"schedule", "say hi", "hi"},
		{"schedule", "Reminder: write an email to anna.txt", "⏰ write an email to anna.txt"},
		{"schedule", "Reminder: list my files", "⏰ list my files"},
		{"schedule", "Reminder: read notes.md", "⏰ read notes.md"},
		{"schedule", "say write hello to a.txt", "write hello to a.txt"},
		{"schedule", "say read notes.md", "read notes.md"},
		{"schedule", "Say: " + long, long},
		{"schedule", "list my files", "My folder has:\n\n- 📄 a"},
		{"schedule, to be answered with NOTHING_TO_SAY alone unless there is something", "look around", "NOTHING_TO_SAY"},
		{"parent", "list my files", "My folder has:\n\n- 📄 a"},
		{
			"subagent",
			"[Subagent 'x' completed successfully]\n\nTask: list my files\n\nResult: - a\n\nSummarize this naturally for the person.",
			"The background task “list my files” completed successfully:\n\n- a",
		},
	} {
		k := &talk{t: t, results: map[string]string{"list_dir": "📄 a"}}
		if got, buttons := k.say("[Sat 2026-11-21 08:30, from the " + c.from + "]\n" + c.say); got != c.want || buttons != nil {
			t.Errorf("%q: got %q, buttons %q; want %q", c.say, got, buttons, c.want)
		}
	}
}

// Jobs that share a name are stopped by their IDs, all of them; then there are none.
func TestStopsJobsOfOneName(t *testing.T) {
	k := &talk{t: t, results: map[string]string{"cron": "Created job 'hi' (id: j1)"}}
	k.say("every 10 seconds say hi")
	k.results["cron"] = "Created job 'hi' (id: j2)"
	k.say("every minute say hi")
	k.results["cron"] = "Created job 'stretch' (id: j3)"
	k.say("remind me in a minute to stretch")
	k.say("remind me in an hour to stretch") // j3 again: P6
	k.results["cron"] = "Removed job"
	for _, c := range []struct{ say, want string }{
		{"Stop saying Hi", "j1 j2"}, {"stop saying hi", "hi"}, {"cancel the reminder stretch", "j3"}, {"stop saying ho", "ho"},
	} {
		before := len(k.history)
		answer, _ := k.say(c.say)
		var ids []string
		for _, m := range k.history[before:] {
			for _, made := range m.Calls {
				var in struct {
					JobID string `json:"job_id"`
				}
				if err := json.Unmarshal([]byte(made.Args), &in); err != nil {
					t.Fatal(err)
				}
				if in.JobID != "" {
					ids = append(ids, in.JobID)
				}
			}
		}
		if got := strings.Join(ids, " "); got != c.want || strings.Count(answer, "will not come again") != 1 {
			t.Errorf("%q: removes %q and says %q; want %q", c.say, got, answer, c.want)
		}
	}
}

// An answer whose buttons cannot be sent is given without them.
func TestAnswersWithoutButtons(t *testing.T) {
	k := &talk{t: t, results: map[string]string{"message": "Error: the chat is gone", "list_dir": "📄 a"}}
	for say, want := range map[string]string{"what can you do?": "Exact sums", "list my files": "📄 a"} {
		k.say(say)
		last := k.history[len(k.history)-1].Text
		if !strings.Contains(last, want) || strings.Contains(last, "did not work") {
			t.Errorf("%q: got %q", say, last)
		}
	}
}

// Programs that use the API get plain text, at once.
func TestAnswersTheAPI(t *testing.T) {
	req := llmtest.Say("what can you do?", allTools...)
	req.System = `It is on the channel "api".`
	msg, err := demo.New("demo").Generate(t.Context(), req, nil)
	if err != nil || len(msg.Calls) != 0 || !strings.Contains(msg.Text, "Exact sums") {
		t.Errorf("got %+v, %v", msg, err)
	}
}

// A second request while the first is at work is answered with it.
func TestAnswersWhatCameMeanwhile(t *testing.T) {
	req := llmtest.Say("list my files", allTools...)
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "a", Name: "list_dir", Args: "{}"}}},
		llm.Message{Role: llm.ToolRole, Call: "a", Name: "list_dir", Text: "📄 a"},
		llm.Message{Role: llm.User, Text: "read b.md"})
	k := &talk{t: t, history: req.Messages[:3], results: map[string]string{"read_file": "1| bee"}}
	if got, _ := k.say("read b.md"); !strings.Contains(got, "📄 a") || !strings.Contains(got, "bee") {
		t.Errorf("got %q", got)
	}
}

// On the console, where pipes wait for an answer to their line, it quotes the line. What
// is to be remembered goes where the instructions say.
func TestReadsTheInstructions(t *testing.T) {
	req := llmtest.Say("what can you do?", allTools...)
	for system, want := range map[string]bool{`It is on the channel "console".`: true, `It is on the channel "web".`: false} {
		req.System = system
		msg, err := demo.New("demo").Generate(t.Context(), req, nil)
		if err != nil || len(msg.Calls) != 1 || strings.Contains(msg.Calls[0].Args, `"reply":true`) != want {
			t.Errorf("%s: got %+v, %v", system, msg, err)
		}
	}
	k := &talk{t: t}
	if got, buttons := k.say("send me a message: hi"); got != "hi"+demo.Notice+"\nThere it is." || buttons != nil {
		t.Errorf("got %q, %q", got, buttons)
	}
	req = llmtest.Say("remember x", allTools...)
	req.System = "AGENTS.md hold these instructions, people/a/MEMORY.md what you remember."
	msg, err := demo.New("demo").Generate(t.Context(), req, nil)
	if err != nil || len(msg.Calls) != 1 || !strings.Contains(msg.Calls[0].Args, `"path":"people/a/MEMORY.md"`) {
		t.Errorf("got %+v, %v", msg, err)
	}
}
