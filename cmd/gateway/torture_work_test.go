package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/scheduler"
)

// A workSiege is a siege in which agents work, too: besides tools there are subagents that their
// parents wait for ("task"), subagents in the background ("spawn"), and a job.
type workSiege struct {
	*siege
	rnd     *rand.Rand
	spawned [][]string // by chat: tasks of subagents in the background
}

const workChats = 3

// TestTortureWork kills the real program while people talk to it, tools and subagents are at
// work, and a job runs every few seconds. Each message is answered once and in order, each
// subagent reports once, no call is begun twice, and each run of the job is done at most once
// (P1, P2, P5, P6, P7, P9, P12).
func TestTortureWork(t *testing.T) {
	for at := range venues {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			began, kills := time.Now(), bouts(4, 200)
			s := &workSiege{rnd: seeded(t), spawned: make([][]string, workChats)}
			s.siege = newSiege(t, at, workChats, func(w *testGateway) {
				w.owners = append(w.owners, "web")
				w.more["cron"] = map[string]any{"minInterval": "1s"}
			})
			s.slow = 20 * time.Millisecond
			s.mu.Lock()
			s.model = s.reply
			s.mu.Unlock()
			job := s.schedule(at)
			for s.kills < kills { // twice, because a message over which the program dies three times would be put aside (P8)
				s.killAt(sometime(s.rnd), s.speak)
				s.killAt(sometime(s.rnd), func() { s.speak(); s.revive() })
				s.revive()
				s.answered()
				s.reported()
			}
			runs := s.checkJob(job)
			s.lift()
			s.checkWork()
			t.Logf("%d kills, %v messages, %d runs of a job, %v", s.kills, s.asked, runs, time.Since(began).Round(time.Second))
		})
	}
}

// speak has people write such as "task 3 of chat 1".
func (s *workSiege) speak() {
	kinds := []string{"plain", "tool", "tell", "slow", "task", "task", "spawn"}
	for range 1 + s.rnd.IntN(3) {
		chat, kind := s.rnd.IntN(workChats), kinds[s.rnd.IntN(len(kinds))]
		s.asked[chat]++
		text := fmt.Sprintf("%s %d of chat %d", kind, s.asked[chat], chat)
		if kind == "spawn" {
			s.spawned[chat] = append(s.spawned[chat], reportOf(nameOf(text)))
		}
		s.say(chat, text)
	}
}

// nameOf makes a name of a message.
func nameOf(m string) string { return strings.ReplaceAll(m, " ", "-") }

// reportOf is what a subagent says when its task is done.
func reportOf(task string) string { return "The task " + task + " is done." }

// note is a call that notes in a file of its own that it was begun.
func note(r llmtest.Request, n int, name string) llm.ToolCall {
	args := fmt.Sprintf(`{"path": "log/%s.txt", "content": "begun\n", "mode": "append"}`, name)
	return llm.ToolCall{ID: fmt.Sprint("c", len(r.Messages), "-", n), Name: "write_file", Args: args}
}

// reply is the model: of a subagent, which notes its task and says that it is done; of whoever is
// told about that; or of a person.
func (s *workSiege) reply(ctx context.Context, r llmtest.Request) llmtest.Reply {
	s.reach("model asked")
	if isFromSubagent(r) {
		reply := llmtest.Reply{Text: reportOf(task(r)), Piece: 10}
		if !used(r) {
			reply = llmtest.Reply{Calls: []llm.ToolCall{note(r, 0, task(r))}, Piece: 10}
		}
		return s.paced(ctx, reply, 0)
	}
	reply, pause := llmtest.Reply{Piece: 10}, time.Duration(0)
	var said, reports []string
	for _, m := range spoken(r) {
		if _, result, isReport := strings.Cut(m, "\n\nResult: "); isReport {
			result, _, _ = strings.Cut(result, "\n\nSummarize this naturally")
			reports = append(reports, result)
			continue
		}
		said = append(said, m)
		if strings.HasPrefix(m, "slow") {
			pause = s.slow
		}
		if !called(r, m) {
			reply.Calls = append(reply.Calls, callsFor(r, len(reply.Calls), m)...)
		}
	}
	if len(reply.Calls) == 0 {
		reply.Text = strings.Join(reports, " ")
	}
	if len(reply.Calls) == 0 && len(said) > 0 {
		reply.Text = "answer to " + strings.Join(said, ", ") + ". " + strings.Repeat("And so on. ", 6) + reply.Text + " The end."
	}
	return s.paced(ctx, reply, pause)
}

// called reports whether r has a call for that message.
func called(r llmtest.Request, m string) bool {
	return slices.ContainsFunc(r.Messages, func(past llmtest.Message) bool {
		return slices.ContainsFunc(past.ToolCalls, func(c llm.ToolCall) bool {
			return strings.Contains(c.Args, m) || strings.Contains(c.Args, nameOf(m))
		})
	})
}

// callsFor are the calls for a message, after the first n of a request.
func callsFor(r llmtest.Request, n int, m string) []llm.ToolCall {
	kind, _, _ := strings.Cut(m, " ")
	call, task := llm.ToolCall{ID: fmt.Sprint("c", len(r.Messages), "-", n)}, nameOf(m)
	switch kind {
	case "tool":
		return []llm.ToolCall{note(r, n, task)}
	case "tell":
		call.Name, call.Args = "message", fmt.Sprintf(`{"text": "meanwhile of %s"}`, m)
	case "task":
		call.Name = "multi_agent"
		call.Args = fmt.Sprintf(`{"tasks": [{"name": "a", "instruction": "%s-a"}, {"name": "b", "instruction": "%s-b"}]}`, task, task)
	case "spawn":
		call.Name, call.Args = "spawn", fmt.Sprintf(`{"task": "%s", "label": "it"}`, task)
	default:
		return nil
	}
	return []llm.ToolCall{call}
}

// reported waits until each subagent in the background has reported.
func (s *workSiege) reported() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitTime)
	defer cancel()
	for chat, reports := range s.spawned {
		texts, err := s.wait(ctx, chat, func(texts []string) bool {
			all := strings.Join(texts, "\n")
			return !slices.ContainsFunc(reports, func(report string) bool { return !strings.Contains(all, report) })
		})
		if err != nil {
			s.t.Fatalf("chat %d: of %q there is only %q", chat, reports, texts)
		}
	}
}

// schedule makes a job that notes each of its runs in a file, and returns its ID.
func (s *workSiege) schedule(at string) string {
	s.t.Helper()
	to := map[string]func() string{
		"telegram": func() string { return fmt.Sprint("telegram:", person) },
		"discord":  func() string { return "discord:" + s.dc.DM(fmt.Sprint(person)) },
		"web":      func() string { return "web:owner/" + s.venue.(*onWeb).tabs[0].id },
	}[at]()
	out, code := s.run("", "cron", "add", "--every", "3s", "--isolated", "--to", to,
		"--tool", "write_file", "--args", `{"path": "runs.txt", "content": "ran\n", "mode": "append"}`)
	id := jobID.FindStringSubmatch(out)
	if code != 0 || id == nil {
		s.t.Fatalf("cron add: %d: %s", code, out)
	}
	return id[1]
}

// checkJob wants the job to run still, and each of its runs, whose number it returns, to have been
// done at most once.
func (s *workSiege) checkJob(id string) uint64 {
	s.t.Helper()
	before := s.job(id, "there", func(scheduler.Job) bool { return true })
	s.job(id, "run again", func(j scheduler.Job) bool { return j.N > before.N+1 })
	ran := 0
	for _, file := range s.written("runs.txt") {
		text, err := os.ReadFile(file)
		if err != nil {
			s.t.Error(err)
		}
		ran += strings.Count(string(text), "ran\n")
	}
	j := s.job(id, "there", func(scheduler.Job) bool { return true })
	if ran == 0 || ran > int(j.N) {
		s.t.Errorf("%d runs of the job, which were done %d times", j.N, ran)
	}
	return j.N
}

// written returns the files of that name that the agent has written for anybody.
func (s *workSiege) written(pattern string) []string {
	s.t.Helper()
	owners, err := filepath.Glob(filepath.Join(s.dir, "workspace", pattern))
	others, wrong := filepath.Glob(filepath.Join(s.dir, "workspace", chat.PeopleDir, "*", pattern))
	if err := errors.Join(err, wrong); err != nil {
		s.t.Fatal(err)
	}
	return append(owners, others...)
}

// checkWork wants each call to have been begun at most once (P6), and each subagent in the
// background to have reported once.
func (s *workSiege) checkWork() {
	s.t.Helper()
	files := s.written("log/*.txt")
	if len(files) == 0 {
		s.t.Error("no call was made")
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); string(text) != "begun\n" {
			s.t.Errorf("%s: %q, %v", filepath.Base(file), text, err)
		}
	}
	for chat, reports := range s.spawned {
		all := strings.Join(s.texts(chat), "\n")
		for _, report := range reports {
			if n := strings.Count(all, report); n != 1 {
				s.t.Errorf("chat %d: %d times %q", chat, n, report)
			}
		}
	}
}
