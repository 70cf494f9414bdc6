package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/replay"
	"parley/config"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/llm/openai"
	"parley/store/mem"
	"parley/tools"
)

var update = flag.Bool("update", false, "make the recordings of testdata anew")

// talks are what is said for each recording, in a testGateway of its own.
var talks = map[string]func(w *testGateway, say func(text string) int){
	"plain": func(w *testGateway, say func(string) int) {
		say("hello")
		say("/new")
		say("and now?")
		w.kill()
		w.start()
		say("still there?")
	},
	"tools": func(w *testGateway, say func(string) int) {
		w.file("a.txt", "alpha\n")
		w.file("b.txt", "beta\n")
		say("call read_file {\"path\": \"a.txt\"}\ncall read_file {\"path\": \"b.txt\"}\ncall read_file {\"path\": \"a.txt\"}\n" +
			"call file_read {\"path\": \"none.txt\"}\ncall write_file {\"path\": \"c.txt\", \"content\": \"c\"}\ncall calculator {\"expression\": \"2 +\"}\ncall nothing {}")
		say("call calculator {\"expression\": \"2 ** 10\"}")
		say("call calculator {\"expression\": \"2 ** 10\"}")
	},
	"rolledback": func(w *testGateway, say func(string) int) {
		say("look for gold")
		say("thank you")
	},
	"edited": func(w *testGateway, say func(string) int) {
		m := say("hello wrld")
		w.tg.Edit(person, m, "hello world")
		w.told(person, "an answer to the edit", func(texts []string) bool { return strings.HasSuffix(texts[len(texts)-1], "hello world") })
		say("bye")
	},
}

// seeker is a model that looks for what it is told to, and for silver when it finds none.
func seeker(ctx context.Context, r llmtest.Request) llmtest.Reply {
	switch words := spokenLast(r); {
	case len(results(r)) > 0:
		return llmtest.Reply{Text: "there is silver"}
	case strings.HasPrefix(r.Last(), "[The last lookup"):
		return llmtest.Reply{Calls: call("web_search", `{"query": "silver"}`)}
	case strings.HasPrefix(words, "look for "):
		return llmtest.Reply{Text: "I look.", Calls: call("web_search", `{"query": "gold"}`)}
	}
	return echo(ctx, r)
}

// searches has the agent of w search where there is silver and no gold.
func (w *testGateway) searches() {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if r.FormValue("q") == "gold" {
			fmt.Fprint(rw, `{"results":[]}`)
			return
		}
		fmt.Fprint(rw, `{"results":[{"title":"Silver","url":"http://example.com/","content":"Ag"}]}`)
	}))
	w.t.Cleanup(s.Close)
	w.more = map[string]any{"tools": map[string]any{"web": map[string]any{
		"allowPrivate": []string{"127.0.0.0/8"}, "search": map[string]any{"provider": "searxng", "baseUrl": s.URL},
	}}}
}

// idle waits until no turn is under way.
func (w *testGateway) idle() {
	for late := time.Now().Add(waitTime); ; {
		out, _ := w.run("", "chat", "-m", "/status")
		if strings.Contains(out, "under way, in all conversations: 0; messages not answered yet: 0.") {
			return
		}
		if time.Now().After(late) {
			w.t.Fatalf("still at work: %s", out)
		}
	}
}

// tape makes one recording with the real program.
func tape(t *testing.T, name string) (w *testGateway, file string) {
	w = newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		reply := obedient(ctx, r)
		for i := range reply.Calls { // the same each time
			reply.Calls[i].ID = fmt.Sprintf("c%d_%d", len(results(r)), i)
		}
		return reply
	})
	if name == "rolledback" {
		w = newTestGateway(t, seeker)
		w.searches()
	}
	w.start()
	talks[name](w, func(text string) int {
		n := len(botTexts(w.tg.Chat(person)))
		m := w.tg.Say(person, text)
		w.told(person, "an answer to "+text, func(texts []string) bool { return len(texts) > n })
		w.idle()
		return m
	})
	file = filepath.Join(t.TempDir(), name+".jsonl")
	if out, code := w.run("", "replay", "telegram:7001", "--save", file); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	return w, file
}

// TestRecordings runs the turns of each recording again: nothing that is asked,
// done or said is another than it was. What is printed of them, with each request
// as it is rebuilt, is as it was, too.
func TestRecordings(t *testing.T) {
	for name := range talks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", "recordings", name+".jsonl")
			if *update {
				_, made := tape(t, name)
				b, err := os.ReadFile(made)
				if err == nil {
					err = os.WriteFile(file, b, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			replayed(t, file)
			printed(t, file)
		})
	}
}

// printed wants what replay prints of a recording to be what stands beside it.
func printed(t *testing.T, file string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "parley", "--data", t.TempDir(), "replay", file, "--requests")
	cmd.Env = append(os.Environ(), "TZ=UTC", "GORACE=atexit_sleep_ms=0")
	got, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	golden := strings.TrimSuffix(file, ".jsonl") + ".txt"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: printed\n%s\nwant\n%s", err, got, want)
	}
}

func replayed(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for turn := range r.Turns() {
		n++
		differences, err := agent.Rerun(t.Context(), mem.New(), r, turn)
		if err != nil || len(differences) > 0 {
			t.Errorf("turn %d: %v %q", turn.N, err, differences)
		}
	}
	if n < 2 {
		t.Errorf("only %d turns", n)
	}
}

// TestRecordingsNotice: a recording that was tampered with, and so a program
// that does something else, is noticed at the right place.
func TestRecordingsNotice(t *testing.T) {
	for _, c := range []struct{ file, was, is, want string }{
		{"plain", `"text":"hello"`, `"text":"hullo"`, ""}, // all that follows is as if it had been said
		{"plain", `"quote":"1","text":"heard hello"`, `"quote":"1","text":"heard nothing"`, "turn 1: record 3: was …"},
		{"tools", `"text":"Successfully`, `"text":"Gladly`, ""},
		{"tools", `"call":"c0_1"`, `"call":"c0_9"`, "turn 1: read_file is called, as c0_1"},
		{"tools", `"call":"c0_3"`, `"call":"c0_9"`, "turn 1: file_read is called, as c0_3"},
		{"rolledback", `"rolledBack":"[The last`, `"rolledBack":"[Another`, "turn 1: record 4: was …"},
		{"rolledback", `"verdict":"poor"`, `"verdict":""`, "turn 1: request 2: was …"},
		{"edited", `"edits":"1"`, `"quote":{"id":"1"}`, ""},
		{"edited", `"outcome":"answered"`, `"outcome":"stopped"`, "turn 1: cannot be re-run: it was not answered: stopped"},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", "recordings", c.file+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(b, []byte(c.was)) {
			t.Errorf("%s: no %s", c.file, c.was)
		}
		file := filepath.Join(t.TempDir(), "tampered")
		if err := os.WriteFile(file, bytes.ReplaceAll(b, []byte(c.was), []byte(c.is)), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, log bytes.Buffer
		p := &program{stdin: os.Stdin, stdout: &out, stderr: &log, drivers: drivers()}
		code := p.run(t.Context(), []string{"replay", file, "--run"})
		if (code != 0) != (c.want != "") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s for %s: exit code %d\n%s%s", c.is, c.was, code, out.String(), log.String())
		}
	}
}

// TestReplay: a running gateway is asked over its socket, one that does not run
// not; what is printed commands no terminal. A request rebuilt from the log is,
// byte for byte, the one that the provider was sent: over a restart, after /new,
// and when the conversation was made to fit.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		reply := obedient(ctx, r)
		reply.Usage = &llm.Usage{In: len(r.Body) / 4, Out: 5}
		return reply
	})
	w.model["contextWindow"] = 8400
	w.start()
	say := func(text string) {
		n := len(botTexts(w.tg.Chat(person)))
		w.tg.Say(person, text)
		w.told(person, "an answer to "+text, func(texts []string) bool { return len(texts) > n })
		w.idle()
	}
	say("hello \x1b]0;mine\x07")
	say("/new")
	for i := range 6 {
		say(strings.Repeat(fmt.Sprintf("%d bottles of beer. ", i), 120) + "\ncall calculator {\"expression\": \"2+2\"}")
		if i == 4 {
			w.stop()
			w.start()
		}
	}
	asked := slices.DeleteFunc(w.llm.Requests(), func(r llmtest.Request) bool { // but for those that sum up old talk
		return !strings.Contains(r.Messages[0].Content, "You run inside Parley")
	})
	running, code := w.run("", "replay", "telegram:7001")
	if code != 0 || !strings.Contains(running, "Turn 7, conversation 2\n") || !strings.Contains(running, "calculator gave, cached\n") || strings.ContainsAny(running, "\x1b\x07") {
		t.Errorf("exit code %d: %q", code, running)
	}
	if out, code := w.run("", "replay", "telegram:1"); code != exitFailure || out != "" {
		t.Errorf("no such session: exit code %d, %q", code, out)
	}
	w.stop()
	file := filepath.Join(t.TempDir(), "saved")
	if out, code := w.run("", "replay", "telegram:7001", "--save", file); code != 0 || out != running {
		t.Errorf("without a gateway: exit code %d: %q", code, out)
	}
	if _, code := w.run("", "replay", "telegram:7001", "--save", file); code != exitFailure {
		t.Errorf("saved over a file that was there: exit code %d", code)
	}
	for want, args := range map[string][]string{
		"turn 7: the same\n": {"--turn", "-1", "--run"},
		"turn 2: the same\n": {"--turn", "2", "--run"},
	} {
		if out, code := w.run("", append([]string{"replay", file}, args...)...); code != 0 || out != want {
			t.Errorf("%v: exit code %d: %q", args, code, out)
		}
	}
	if out, code := w.run("", "replay", file, "--turn", "8"); code != exitFailure || out != "" {
		t.Errorf("turn 8: exit code %d: %q", code, out)
	}
	out, _ := w.run("", "replay", file, "--requests")
	if strings.Count(out, "You run inside Parley") != 1 || strings.Count(out, "  system ") != 1 {
		t.Errorf("the instructions are not printed once:\n%s", out)
	}
	rebuilt(t, file, asked)
}

// rebuilt wants the requests of the recording in file to be those that asked holds.
func rebuilt(t *testing.T, file string, asked []llmtest.Request) {
	t.Helper()
	s := llmtest.NewServer(func(context.Context, llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "yes"} })
	defer s.Close()
	model := openai.New(openai.Config{Name: "main", BaseURL: s.URL(), APIKey: "k", Model: "gpt-test"})
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for turn := range r.Turns() {
		for _, e := range turn.Events {
			if e.Request == nil {
				continue
			}
			if _, err := model.Generate(t.Context(), *e.Request, func(llm.Delta) {}); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := s.Requests()
	if len(again) != len(asked) {
		t.Fatalf("%d requests, and %d recorded", len(asked), len(again))
	}
	for i := range again {
		if !bytes.Equal(again[i].Body, asked[i].Body) {
			t.Errorf("request %d was\n%s\nand is rebuilt as\n%s", i+1, asked[i].Body, again[i].Body)
		}
	}
	if last := len(asked[len(asked)-1].Messages); last >= 2*6*2 {
		t.Errorf("the conversation was not made to fit: %d messages", last)
	}
}

// TestRecords, D-036: the record that the store keeps, what
// the API tells and the step that the person is shown are of the same calls.
func TestRecords(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.start()
	w.file("a.txt", "alpha\n")
	w.tg.Say(person, "call read_file {\"path\": \"a.txt\"}\ncall file_read {\"path\": \"b.txt\"}\ncall read_file {\"path\": \"a.txt\"}")
	w.told(person, "the end", func(texts []string) bool {
		return len(texts) > 0 && strings.HasPrefix(texts[len(texts)-1], "the tools say")
	})
	w.idle()
	before := w.calls("telegram:7001")
	w.stop()
	p := &program{stderr: &w.log, data: w.dir, environ: config.NewEnviron([]string{"TOWN_MODEL_KEY=" + canaryKey, "TOWN_BOT_TOKEN=" + w.tg.Token()}), drivers: drivers()}
	client, err := p.admin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	look := func(path string, v any) {
		if err := client.Ask(t.Context(), "GET", path, nil, v); err != nil {
			t.Error(err)
		}
	}
	var d struct{ Calls []tools.Record }
	look("/api/sessions/telegram:7001/calls", &d)
	after := d.Calls
	a, _ := json.Marshal(before)
	b, _ := json.Marshal(after)
	if string(a) != string(b) || len(after) != 3 {
		t.Fatalf("before a restart %s, after it %s", a, b)
	}
	var keys []map[string]any
	if err := json.Unmarshal(b, &keys); err != nil {
		t.Fatal(err)
	}
	for i, r := range after {
		if got := strings.Join(slices.Sorted(maps.Keys(keys[i])), " "); got != "execution_time function id meta result skipped success type" {
			t.Errorf("keys %s", got)
		}
		if !json.Valid([]byte(r.Function.Arguments)) || !json.Valid([]byte(r.Result)) || (r.ExecutionTime > 0) == r.Skipped {
			t.Errorf("%+v", r)
		}
	}
	if r := after[1]; r.Success || r.Function.Name != "file_read" || r.Meta.Tool != "read_file" || r.Meta.Alias != "file_read" || r.Meta.Status != "error" || r.Meta.CallTime == "" {
		t.Errorf("%+v", r)
	}
	if !after[2].Skipped || after[2].Meta.DuplicateOf != after[0].ID {
		t.Errorf("%+v", after[2])
	}
	var all struct {
		Tools []struct {
			AliasOf string `json:"alias_of"`
		}
		Total int
	}
	look("/api/tools?all=1", &all)
	if all.Total < 20 || !slices.ContainsFunc(all.Tools, func(t struct {
		AliasOf string `json:"alias_of"`
	}) bool {
		return t.AliasOf == "read_file"
	}) {
		t.Errorf("the tools: %+v", all)
	}
}

// TestRecordingsWithHoles: whatever line of a recording is missing, what is left
// can be printed, and run again or not.
func TestRecordingsWithHoles(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "recordings", "rolledback.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	for i := range lines {
		r, err := replay.Read(bytes.NewReader(bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil)))
		if (err != nil) != (i == 0) {
			t.Fatalf("without line %d: %v", i+1, err)
		} else if err != nil {
			continue
		}
		v := replay.Printer{Out: io.Discard, Zone: time.UTC, Requests: true}
		for turn := range r.Turns() {
			v.Print(turn)
			if _, err := agent.Rerun(t.Context(), mem.New(), r, turn); err != nil && !strings.HasPrefix(err.Error(), "cannot be re-run: ") {
				t.Errorf("without line %d: %v", i+1, err)
			}
		}
	}
	swapped := bytes.Join([][]byte{lines[0], lines[2], lines[1], lines[1]}, nil)
	if _, err := replay.Read(bytes.NewReader(swapped)); err == nil {
		t.Error("records out of order are read")
	}
}
