package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agent"
	"parley/llm/llmtest"
	"parley/store/mem"
)

var update = flag.Bool("update", false, "make the recordings of testdata anew")

// talks are what is said for each recording, in a town of its own.
var talks = map[string]func(w *town, say func(text string) int){
	"plain": func(w *town, say func(string) int) {
		say("hello")
		say("/new")
		say("and now?")
		w.kill()
		w.start()
		say("still there?")
	},
	"tools": func(w *town, say func(string) int) {
		w.file("a.txt", "alpha\n")
		w.file("b.txt", "beta\n")
		say("call read_file {\"path\": \"a.txt\"}\ncall read_file {\"path\": \"b.txt\"}\ncall read_file {\"path\": \"a.txt\"}\n" +
			"call file_read {\"path\": \"none.txt\"}\ncall write_file {\"path\": \"c.txt\", \"content\": \"c\"}\ncall calculator {\"expression\": \"2 +\"}\ncall nothing {}")
		say("call calculator {\"expression\": \"2 ** 10\"}")
		say("call calculator {\"expression\": \"2 ** 10\"}")
	},
	"rolledback": func(w *town, say func(string) int) {
		say("look for gold")
		say("thank you")
	},
	"edited": func(w *town, say func(string) int) {
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
func (w *town) searches() {
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
func (w *town) idle() {
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
func tape(t *testing.T, name string) (w *town, file string) {
	w = newTown(t, obedient)
	if name == "rolledback" {
		w = newTown(t, seeker)
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
// done or said is another than it was.
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
		})
	}
}

func replayed(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := agent.ReadRecording(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for turn := range r.Turns() {
		n++
		differences, err := r.Rerun(t.Context(), mem.New(), turn)
		if err != nil || len(differences) > 0 {
			t.Errorf("turn %d: %v %q", turn.N, err, differences)
		}
	}
	if n < 2 {
		t.Errorf("only %d turns", n)
	}
}
