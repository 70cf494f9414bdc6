package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/llm/llmtest"
	"parley/scheduler"
)

// isFromSubagent reports whether r is a request of a subagent's turn.
func isFromSubagent(r llmtest.Request) bool {
	return strings.Contains(r.Messages[0].Content, "You are a subagent: an agent gave you a task")
}

// task is what the subagent of r was told to do.
func task(r llmtest.Request) string {
	_, text, _ := strings.Cut(r.Messages[1].Content, "\n")
	return text
}

// modelWithSubagents is a model that answers subagents as subagent does. It passes
// their reports on as "the subagent says: " and the result, after it called each do.
func modelWithSubagents(subagent llmtest.Handler, do ...func()) llmtest.Handler {
	return func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if isFromSubagent(r) {
			return subagent(ctx, r)
		}
		if _, report, ok := strings.Cut(spokenLast(r), "\n\nResult: "); ok && !used(r) {
			report, _, _ = strings.Cut(report, "\n\nSummarize this naturally")
			for _, f := range do {
				f()
			}
			return llmtest.Reply{Text: "the subagent says: " + report}
		}
		return errand(ctx, r)
	}
}

// waitForSubagents waits until subagents have made n requests for which ok is true.
func (w *testGateway) waitForSubagents(n int, ok func(llmtest.Request) bool) {
	w.t.Helper()
	for late := time.Now().Add(waitTime); ; soon(w.t.Context()) {
		found := 0
		for _, r := range w.asked() {
			if isFromSubagent(r) && ok(r) {
				found++
			}
		}
		switch {
		case found >= n:
			return
		case time.Now().After(late):
			w.t.Fatalf("%d requests of subagents, not %d", found, n)
		}
	}
}

func anything(llmtest.Request) bool { return true }

// counts returns how many messages of the bot hold text.
func (s *spot) counts(text string) (n int) {
	for _, m := range s.all("nothing", func([]shown) bool { return true }) {
		n += min(1, strings.Count(m.text, text))
	}
	return n
}

var spawned = regexp.MustCompile(`Subagent \[(\w+)\] started \(id: (\w{8})\)\. I'll notify you when it completes\.`)

// spawns says text, which has a background task started, and returns what [spawned] finds once all of it is there.
func (s *spot) spawns(text string) (found []string) {
	s.testGateway.t.Helper()
	s.say(text)
	s.lastThat("a background task", func(m shown) bool {
		found = spawned.FindStringSubmatch(m.text)
		return found != nil && !m.live()
	})
	return found
}

// TestD092InTheBackground: a subagent works while the talk goes on, and what it
// found comes as a second message. A crash in the middle of its work loses
// nothing, and the report comes once (D-092, A-072).
func TestD092InTheBackground(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", crash), func(t *testing.T) {
			t.Parallel()
			open := make(chan struct{})
			w := newTestGateway(t, modelWithSubagents(func(ctx context.Context, r llmtest.Request) llmtest.Reply {
				select {
				case <-open:
				case <-ctx.Done():
				}
				return llmtest.Reply{Text: "384,400 km."}
			}))
			w.start()
			s := w.telegramSpot()
			at := s.spawns(`call spawn {"task": "Find out how far the moon is", "label": "moon"}`)
			if at == nil {
				t.Fatalf("the bot said %q", botTexts(w.tg.Chat(person)))
			}
			w.waitForSubagents(1, func(r llmtest.Request) bool { return task(r) == "Find out how far the moon is" })
			if crash {
				w.kill()
				w.start()
				w.waitForSubagents(2, anything)
			}
			s.asks("and now?", "heard and now?")
			if text := s.asks("/agents", "Background tasks:").text; !strings.Contains(text, at[2]+" moon – ") {
				t.Errorf("/agents: %s", text)
			}
			close(open)
			s.last("the subagent says: 384,400 km.")
			s.asks("thanks", "heard thanks")
			if n := s.counts("384,400"); n != 1 {
				t.Errorf("the report came %d times: %q", n, botTexts(w.tg.Chat(person)))
			}
			s.asks("/agents", "No background tasks are running.")
			if why := w.llm.Refused(); len(why) > 0 && !crash {
				t.Errorf("the provider refused: %q", why)
			}
		})
	}
}

// TestGoneJobsSubagent: what a run has begun goes on when its job is gone, and its
// subagent reports, although the sessions of such jobs are swept away (point 6).
func TestGoneJobsSubagent(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	w := clocked(t, modelWithSubagents(func(ctx context.Context, _ llmtest.Request) llmtest.Reply {
		select {
		case <-open:
		case <-ctx.Done():
		}
		return llmtest.Reply{Text: "384,400 km."}
	}))
	w.start()
	s := w.telegramSpot()
	s.asks("hello", "heard hello")
	out, code := w.run("", "cron", "add", "--every", "1h", "--isolated", "--to", s.session, `call spawn {"task": "Measure", "label": "moon"}`)
	if code != 0 {
		t.Fatal(out)
	}
	id := jobID.FindStringSubmatch(out)[1]
	s.asks("/cron run "+id, "runs now")
	s.last("the tools say: Subagent [moon] started")
	w.waitForSubagents(1, anything)
	s.asks("/cron remove "+id, "Removed job")
	if out, code := w.run("", "cron", "run", "dream"); code != 0 {
		t.Fatal(out)
	}
	w.job("dream", "over", hasEnded(scheduler.Done))
	close(open)
	s.last("the subagent says: 384,400 km.")
}

// TestA073SideBySide: of three tasks one fails, and the agent reads what came of each, without
// what the subagents thought (E-038).
func TestA073SideBySide(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, modelWithSubagents(func(_ context.Context, r llmtest.Request) llmtest.Reply {
		if task(r) == "fail" {
			return llmtest.Reply{Status: http.StatusBadRequest, Body: `{"error": {"message": "no such task"}}`}
		}
		return llmtest.Reply{Text: "<think>How about " + task(r) + "?</think>\n\n" + task(r) + " is done"} // E-038
	}))
	w.start()
	s := w.telegramSpot()
	s.asks(`call multi_agent {"tasks": [{"name": "a", "instruction": "one"}, {"name": "b", "instruction": "fail"}, {"name": "c", "instruction": "two"}]}`, "the tools say: ")
	want := regexp.MustCompile(`^\{"success":true,"results":\[\{"task_name":"a","success":true,"response":"one is done"\},` +
		`\{"task_name":"b","success":false,"error":"LLM API error: .*no such task.*"\},\{"task_name":"c","success":true,"response":"two is done"\}\],"total":3\}$`)
	if rs := results(w.lastAsked()); len(rs) != 1 || !want.MatchString(rs[0]) {
		t.Errorf("the agent reads %q", rs)
	}
}

// TestC033NewTask: an agent of the workspace does a task while its parent
// waits. A crash does not end the waiting, and what the person says meanwhile the
// child hears (C-031, C-033).
func TestC033NewTask(t *testing.T) {
	t.Parallel()
	open := make(chan struct{}, 9)
	w := newTestGateway(t, modelWithSubagents(func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if len(results(r)) == 0 && !slices.ContainsFunc(spoken(r), func(text string) bool { return strings.Contains(text, "Celsius") }) {
			select {
			case <-open:
			case <-ctx.Done():
			}
			return llmtest.Reply{Calls: call("calculator", `{"expression": "(70-32)*5/9"}`)}
		}
		return llmtest.Reply{Text: "I heard: " + strings.Join(spoken(r), " + ")}
	}))
	w.start()
	s := w.telegramSpot()
	s.asks("hello", "heard hello")
	w.file("agents/weatherman.md", "---\ndescription: Knows the weather\ntools: [calculator]\nrounds: 5\n---\nYou know the weather of canary-bay.\n")
	s.say(`call new_task {"agentName": "weatherman", "taskName": "weather", "input": "How warm is it?"}`)
	w.waitForSubagents(1, func(r llmtest.Request) bool {
		return task(r) == "How warm is it?" && strings.HasPrefix(r.Messages[0].Content, "You know the weather of canary-bay.\n\n") && len(r.Tools) == 1
	})
	w.kill()
	w.start()
	w.waitForSubagents(2, anything)
	s.post("in Celsius, please")
	for late := time.Now().Add(waitTime); !strings.Contains(w.status(), "messages not answered yet: 3"); soon(t.Context()) {
		if time.Now().After(late) {
			t.Fatalf("it was not heard: %s", w.status())
		}
	}
	open <- struct{}{}
	s.last("the tools say: ")
	rs := results(w.lastAsked())
	if want := regexp.MustCompile(`^\{"success":true,"summary":"I heard: How warm is it\? \+ in Celsius, please","subtaskId":"sub_task_\w{8}"\}$`); len(rs) != 1 || !want.MatchString(rs[0]) {
		t.Errorf("the parent reads %q", rs)
	}
	s.asks("thanks", "heard thanks")
	if n := s.counts("Celsius"); n != 1 {
		t.Errorf("%d answers: %q", n, botTexts(w.tg.Chat(person)))
	}
}

// status is what /status says at the terminal.
func (w *testGateway) status() string {
	out, _ := w.run("", "chat", "-m", "/status")
	return out
}

// TestD093StopStopsAll: /stop stops the answer under way and all subagents, of
// which nothing more is heard (D-093).
func TestD093StopStopsAll(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, modelWithSubagents(func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		<-ctx.Done()
		return llmtest.Reply{}
	}))
	w.start()
	s := w.telegramSpot()
	spawn := func(label string) string {
		return fmt.Sprintf(`call spawn {"task": "wait for %s", "label": %q}`, label, label)
	}
	s.asks(spawn("ebb"), "Subagent [ebb] started")
	s.asks(spawn("flood")+"\n", "Subagent [flood] started")
	s.say(`call multi_agent {"tasks": [{"name": "storm", "instruction": "wait for the storm"}]}`)
	w.waitForSubagents(3, anything)
	if text := s.asks("/agents", "Background tasks:").text; strings.Count(text, ", began ") != 3 {
		t.Errorf("/agents: %s", text)
	}
	s.say("/stop")
	const stopped = "(Stopped, with 3 background tasks.)" // its message may have been a live view before
	s.all(stopped, func(all []shown) bool {
		return slices.ContainsFunc(all, func(m shown) bool { return strings.Contains(m.text, stopped) })
	})
	s.asks("/agents", "No background tasks are running.")
	s.asks("/stop", "There is nothing to stop.")
	s.asks(spawn("calm"), "Subagent [calm] started")
	s.asks("/stop", "Stopped a background task.")
	s.asks("hello", "heard hello")
	if n := s.counts("the subagent says"); n != 0 {
		t.Errorf("%d reports: %q", n, botTexts(w.tg.Chat(person)))
	}
}

// TestAgentsAreSteered: a subagent is paused, resumed, told something and stopped
// from the chat, by nobody else; what was stopped is told to its parent.
func TestAgentsAreSteered(t *testing.T) {
	t.Parallel()
	step := make(chan struct{})
	w := newTestGateway(t, modelWithSubagents(func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		select {
		case <-step:
		case <-ctx.Done():
		}
		if slices.Contains(spoken(r), "that will do") {
			return llmtest.Reply{Text: "I counted."}
		}
		return llmtest.Reply{Calls: call("list_dir", fmt.Sprintf(`{"path": "%d"}`, r.N))}
	}))
	w.start()
	s, other := w.telegramSpot(), w.at(asker)
	begin := func(label string) string {
		t.Helper()
		return s.spawns(fmt.Sprintf(`call spawn {"task": "count %s", "label": %q}`, label, label))[2]
	}
	of := func(label string) func(llmtest.Request) bool {
		return func(r llmtest.Request) bool { return task(r) == "count "+label }
	}
	sheep := begin("sheep")
	w.waitForSubagents(1, of("sheep"))
	step <- struct{}{}
	w.waitForSubagents(2, of("sheep"))
	other.asks("/agents", "No background tasks are running.")
	other.asks("/agents stop "+sheep, "You have no such background task; /agents lists them.")
	s.asks("/agents pause "+sheep, "Paused the background task 'sheep' ("+sheep+").")
	step <- struct{}{}
	s.asks("/agents", sheep+" sheep – paused")
	s.asks("hello", "heard hello") // others go on meanwhile
	s.asks("/agents tell "+sheep+" that will do", "Told the background task 'sheep' ("+sheep+").")
	w.kill()
	w.start()
	s.asks("/agents", sheep+" sheep – paused")
	w.waitForSubagents(2, of("sheep"))
	s.asks("/agents resume "+sheep, "Resumed the background task 'sheep' ("+sheep+").")
	w.waitForSubagents(3, of("sheep"))
	step <- struct{}{}
	s.last("the subagent says: I counted.")

	goats := begin("goats")
	w.waitForSubagents(1, of("goats"))
	s.asks("/agents stop "+goats, "Stopped the background task 'goats' ("+goats+").")
	s.asks("/agents", "No background tasks are running.")
	s.asks("/agents sing "+goats, "Write /agents to see the background tasks, or /agents stop ID, ")
}
