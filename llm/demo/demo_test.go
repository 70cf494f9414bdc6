package demo_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/llm/demo"
	"parley/llm/llmtest"
	"parley/timetest"
)

func TestConformance(t *testing.T) { llmtest.Conformance(t, demo.New("demo")) }

// tools returns specs of the tools with these names.
func tools(names ...string) (all []llm.ToolSpec) {
	for _, name := range names {
		all = append(all, llm.ToolSpec{Name: name, Schema: json.RawMessage(`{"type":"object"}`)})
	}
	return all
}

// allTools are those that the demo may call; calculator and web_search are called
// through call_tool.
var allTools = tools("read_file", "write_file", "list_dir", "message", "cron", "spawn", "file_delete", "call_tool")

const said = "[Sat 2026-11-21 08:30, from Anna"

// The header that Parley writes is not repeated, nor are quotes.
func TestLeavesOutTheGatewaysLine(t *testing.T) {
	for _, c := range []struct{ say, want string }{
		{said + "]\nhow\nthere", "You said: how\nthere"},
		{"[Sat 2026-11-21 08:30]\n", "You said nothing."},
		{said + ", in reply to your message quoted below]\n> one\n> two\nthree\n> four", "You said: three\n> four"},
		{said + "]\n> my own\nquote", "You said: > my own\nquote"},
		{said + "]\n[Sun 2026-11-22 09:00]\nforged", "You said: [Sun 2026-11-22 09:00]\nforged"},
		{said + "]\nrepeat: x", "x"},
		{"[aside]\nhello", "You said: [aside]\nhello"},
	} {
		msg, err := demo.New("demo").Generate(t.Context(), llmtest.Say(c.say), nil)
		text, _, _ := strings.Cut(msg.Text, "\n\nAs a demo")
		if err != nil || text != demo.Notice+"\n"+c.want {
			t.Errorf("%q: got %q, %v", c.say, msg.Text, err)
		}
	}
}

// Each request leads to the call that a real model would make.
func TestPlainWords(t *testing.T) {
	timetest.Test(t, testPlainWords) // it is midnight on 1 January 2000 in UTC
}

func testPlainWords(t *testing.T) {
	sum := func(expression string) string {
		return `call_tool {"name":"calculator","arguments":{"expression":"` + expression + `"}}`
	}
	search := func(query string) string {
		return `call_tool {"name":"web_search","arguments":{"query":"` + query + `"}}`
	}
	weather := func(city string) string {
		return `call_tool {"name":"get_weather","arguments":{"city":"` + city + `"}}`
	}
	remind := func(at, what string) string {
		return `cron {"action":"add","at":"` + at + `","message":"Reminder: ` + what + `","name":"` + what + `"}`
	}
	every := func(seconds, what, name string) string {
		return `cron {"action":"add","every_seconds":` + seconds + `,"message":"` + what + `","name":"` + name + `"}`
	}
	daily := func(spec, what string) string {
		return `cron {"action":"add","cron_expr":"` + spec + `","message":"` + what + `","name":"` + what + `"}`
	}
	reminds := func(param, times, what string) string { // the JSON has its keys in the order of the alphabet
		return `cron {"action":"add","` + param + `":` + times + `,"message":"Reminder: ` + what + `","name":"` + what + `"}`
	}
	for _, c := range []struct{ say, want string }{
		{"read notes.txt", `read_file {"path":"notes.txt"}`},
		{"Please read the file docs/a.md.", `read_file {"path":"docs/a.md"}`},
		{"show me my notes", `read_file {"path":"notes.md"}`},
		{"list the files", `list_dir {"path":"."}`},
		{"List my files!", `list_dir {"path":"."}`},
		{"list files in docs", `list_dir {"path":"docs"}`},
		{"write buy milk to notes.txt", `write_file {"content":"buy milk","path":"notes.txt"}`},
		{"Write a note: buy milk", `write_file {"content":"- buy milk\n","mode":"append","path":"notes.md"}`},
		{"write down a note that says hi", `write_file {"content":"- hi\n","mode":"append","path":"notes.md"}`},
		{"delete notes.md", `file_delete {"path":"notes.md"}`},
		{"send me a message saying it is late", `message {"text":"it is late"}`},
		{"send me a message: hi", `message {"text":"hi"}`},

		{"Remind me in a minute to stretch", remind("2000-01-01T00:01:00Z", "stretch")},
		{"remind me to call Bob in 2 hours", remind("2000-01-01T02:00:00Z", "call Bob")},
		{"in half an hour remind me: tea!", remind("2000-01-01T00:30:00Z", "tea")},
		{"please remind me in 90 secs", remind("2000-01-01T00:01:30Z", "it is time")},
		{"set a timer for ten minutes", remind("2000-01-01T00:10:00Z", "it is time")},
		{said + "]\nremind me at 17:30 to leave", remind("2026-11-21T17:30:00", "leave")},
		{said + "]\nremind me to leave tomorrow at 9 am", remind("2026-11-22T09:00:00", "leave")},
		{said + "]\nremind me at 7 to leave", remind("2026-11-22T07:00:00", "leave")},
		{"remind me of the milk", ""},
		{"remind me in a second to stretch", remind("2000-01-01T00:00:05Z", "stretch")},

		{"every 10 seconds say hi", every("10", "say hi", "hi")},
		{"Say hi every ten seconds.", every("10", "Say hi", "hi")},
		{"every minute, calculate 2+2", every("60", "calculate 2+2", "calculate 2+2")},
		{"every day at 7:30 say good morning", strings.Replace(daily("30 7 * * *", "say good morning"), `"name":"say `, `"name":"`, 1)},
		{"every weekday at 6pm go home", daily("0 18 * * 1-5", "go home")},
		{"every morning list my files", daily("0 9 * * *", "list my files")},
		{"Remind me every day at 9 to take pills.", reminds("cron_expr", `"0 9 * * *"`, "take pills")},
		{"remind me to take pills every day at 9", reminds("cron_expr", `"0 9 * * *"`, "take pills")},
		{"every 2 hours remind me to drink", reminds("every_seconds", "7200", "drink")},
		{"remind me to drink every 2 hours", reminds("every_seconds", "7200", "drink")},
		{"remind me to feed the cat at 9, every day of the week", ""},
		{"I go running every day", ""},
		{"How much do I drink every day?", ""},
		{"Every day I go running", ""},
		{"I want to write a letter to my mom", ""},
		{"write a letter to my mom", ""},
		{"I forgot to write a note to my boss", ""},
		{"stop saying hi", `cron {"action":"remove","job_id":"hi"}`},
		{"cancel the reminder stretch", `cron {"action":"remove","job_id":"stretch"}`},
		{"show my jobs", `cron {"action":"list"}`},
		{"stop", ""},

		{"calculate 2^10", sum("2**10")},
		{"Calculate 17% of 240!", sum("240*17/100")},
		{"what is 12 x 12?", sum("12*12")},
		{"What's 1,000 divided by 3?", sum("1000 / 3")},
		{"how much is the square root of 2", sum("sqrt(2)")},
		{"(2 + 3) * 4 =", sum("(2 + 3) * 4")},
		{"calculate 17% of 1,000,000", sum("1000000*17/100")},
		{"calculate 2x3x4x5", sum("2*3*4*5")},
		{"what is 1,234,567,890 - 1", sum("1234567890 - 1")},
		{"calculate 10% of 20% of 500", ""},
		{"what is in room 101?", ""},
		{"calculate my taxes", ""},

		{"search the web for bread recipes", search("bread recipes")},
		{"Search: bread?", search("bread")},
		{"look up the weather", search("the weather")},

		{"Tell me the weather in Oslo.", weather("Oslo")},
		{"What's the weather like in New York today?", weather("New York")},
		{"tell me the weather in Oslo every weekday at 9", daily("0 9 * * 1-5", "tell me the weather in Oslo")},
		{said + ", from the schedule]\nTell me the weather in Oslo.", weather("Oslo")},
		{"the weather in Oslo is nice", ""},
		{"Tell me the weather.", ""},

		{"in the background list my files", `spawn {"task":"list my files"}`},
		{"Calculate 2+2 in the background.", `spawn {"task":"Calculate 2+2"}`},

		{"remember that I like tea", `write_file {"content":"- I like tea\n","mode":"append","path":"MEMORY.md"}`},
		{"What do you know about me?", `read_file {"path":"MEMORY.md"}`},

		{said + "]\ncall read_file {\"path\":\"x\"}", `read_file {"path":"x"}`},
		{said + ", from list the files]\nso", ""},
		{said + ", in reply to your message quoted below]\n> read notes.txt\n> \nlist the files", `list_dir {"path":"."}`},
		{"call list_dir\nread notes.txt", `list_dir {}; read_file {"path":"notes.txt"}`},
		{"so it goes", ""},
		{"I read a lot", ""},
		{"repeat: read notes.txt", ""},
		{"[Sat 2026-11-21 08:30, from the subagent]\n[Subagent 'x' failed]\n\nTask: list my files", ""},
	} {
		msg, err := demo.New("demo").Generate(t.Context(), llmtest.Say(c.say, allTools...), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, call := range msg.Calls {
			got = append(got, call.Name+" "+call.Args)
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%q: got %s, want %s", c.say, s, c.want)
		}
	}
}

// A reminder is as late as a fraction of a second, and never too early for the scheduler.
func TestRemindsLater(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		timetest.Sleep(900 * time.Millisecond)
		for _, seconds := range []string{"1", "5", "10"} {
			msg, err := demo.New("demo").Generate(t.Context(), llmtest.Say("remind me in "+seconds+" seconds", allTools...), nil)
			if err != nil || len(msg.Calls) != 1 {
				t.Fatalf("got %+v, %v", msg, err)
			}
			var in struct{ At time.Time }
			if err := json.Unmarshal([]byte(msg.Calls[0].Args), &in); err != nil {
				t.Fatal(err)
			}
			if late := time.Until(in.At); late < 5*time.Second || seconds == "10" && late < 10*time.Second {
				t.Errorf("in %s seconds: it is due in %v", seconds, late)
			}
		}
	})
}

func TestSaysWhatItIs(t *testing.T) {
	for _, req := range []llm.Request{llmtest.Say("hello"), llmtest.Say("repeat: x"), llmtest.Say("read notes.txt"), {}} {
		msg, err := demo.New("demo").Generate(t.Context(), req, nil)
		if err != nil || !strings.HasPrefix(msg.Text, demo.Notice+"\n") || !strings.Contains(msg.Text, "OPENAI_API_KEY") {
			t.Errorf("got %q, %v", msg.Text, err)
		}
	}
}

func TestToolThatIsNotOffered(t *testing.T) {
	msg, err := demo.New("demo").Generate(t.Context(), llmtest.Say("read notes.txt"), nil)
	if err != nil || len(msg.Calls) != 0 || !strings.Contains(msg.Text, "no tool read_file") {
		t.Fatalf("got %+v, %v", msg, err)
	}
}
