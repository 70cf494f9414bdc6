package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/tools"
	"parley/workspace"
)

// newExecGateway founds a testGateway whose agent runs commands without a sandbox.
func newExecGateway(t *testing.T) *testGateway {
	w := newTestGateway(t, obedient)
	w.more["tools"] = map[string]any{"exec": map[string]any{"sandbox": "none"}}
	w.start()
	return w
}

// work returns the path of a file in the folder of programs.
func (w *testGateway) work(name string) string {
	return filepath.Join(w.dir, "workspace", "work", name)
}

// writes waits until a command has written a file, and returns what it wrote.
func (w *testGateway) writes(name string) (text string) {
	w.t.Helper()
	waitFor(w.t, "the file "+name, func() bool {
		b, _ := os.ReadFile(w.work(name))
		text = strings.TrimSpace(string(b))
		return strings.HasSuffix(string(b), "\n")
	})
	return text
}

// endLater ends the process whose number a command wrote, when the test ends, in case it outlives Parley.
func (w *testGateway) endLater(pid string) {
	w.t.Cleanup(func() {
		if n := number(pid); n > 1 {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	})
}

// D-072, B-013: an owner's commands run, each in the folder and with the variables that the last one
// ended with, also after a crash; for others there are none.
func TestExecForOwners(t *testing.T) {
	t.Parallel()
	w := newExecGateway(t)
	w.tg.Say(person, `call exec {"command": "mkdir -p site && cd site && export COLOUR=red; pwd"}`)
	w.told(person, "the folder", func(texts []string) bool { return toldOf(texts, "/work/site\n\nExit code: 0") })
	w.kill()
	w.start()
	w.tg.Say(person, `call exec {"command": "pwd; echo $COLOUR ${TOWN_MODEL_KEY-none}"}`)
	w.told(person, "the same shell", func(texts []string) bool {
		return toldOf(texts, "/work/site\nred none\n\nExit code: 0")
	})
	w.tg.Say(person, "/new")
	w.tg.Say(person, `call exec {"command": "pwd; echo ${COLOUR-unset}"}`)
	w.told(person, "a new shell", func(texts []string) bool { return toldOf(texts, "/work\nunset\n\nExit code: 0") })
	w.tg.Say(asker, `call exec {"command": "touch theirs"}`)
	w.told(asker, "that there is no such tool", func(texts []string) bool { return toldOf(texts, "exec") })
	if there(w.work("theirs")) {
		t.Error("somebody who is no owner ran a command")
	}
}

// R-S16: a config that lets everyone run commands does not let them do so without a sandbox.
func TestOnlyOwnersWithoutSandbox(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.more["tools"] = map[string]any{
		"exec":  map[string]any{"sandbox": "none"},
		"rules": map[string]any{"exec": "everyone"},
	}
	w.start()
	w.tg.Say(asker, `call exec {"command": "touch theirs"}`)
	w.told(asker, "the refusal", func(texts []string) bool { return toldOf(texts, "only for owners") })
	if found, _ := filepath.Glob(filepath.Join(w.dir, "workspace", "people", "*", "work", "theirs")); len(found) > 0 {
		t.Error("somebody who is no owner ran a command without a sandbox")
	}
}

// P6: a crash in the middle of a command is told to the model, and the command is not run again.
func TestKillInCommand(t *testing.T) {
	t.Parallel()
	w := newExecGateway(t)
	w.tg.Say(person, `call exec {"command": "echo $$ >> pids; sleep 300"}`)
	pid := w.writes("pids")
	w.endLater(pid)
	w.kill()
	w.start()
	w.told(person, "the interruption", func(texts []string) bool { return toldOf(texts, "interrupted") })
	if again := w.writes("pids"); again != pid {
		t.Errorf("it was run as %q and as %q", pid, again)
	}
}

// R-S12, P6: what a command with untrusted content wrote before Parley was killed is untrusted after the next
// start, and nothing else is.
func TestKillInUntrustedCommand(t *testing.T) {
	t.Parallel()
	w := newExecGateway(t)
	w.tg.Say(person, `call exec {"command": "pwd"}`)
	w.told(person, "where it works", func(texts []string) bool { return toldOf(texts, "/work") })
	w.file("inbox/letter.txt", "obey\n")
	w.file("work/mine/note.txt", "mine\n") // open to others, which the next start leaves so: work is not
	time.Sleep(100 * time.Millisecond)     // by the times of files, it is older than the command
	w.tg.Say(person, `call exec {"command": "cat ../inbox/letter.txt > theirs.txt; echo $$ >> pids; sleep 300"}`)
	w.endLater(w.writes("pids"))
	w.kill()
	files, err := workspace.Open(filepath.Join(w.dir, "workspace"))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	isUntrusted := func(name string) bool {
		at, err := files.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		return tools.Untrusted(tools.Scope{Workspace: files, From: chat.Sender{Role: chat.Owner}}, at)
	}
	for _, name := range []string{"work/theirs.txt", "work/mine/note.txt"} {
		if !isUntrusted(name) {
			t.Errorf("%s is trusted while it is not known what the command wrote", name)
		}
	}
	w.start()
	waitFor(t, "the marks", func() bool { return !isUntrusted("work/mine/note.txt") })
	if !isUntrusted("work/theirs.txt") {
		t.Error("what the command wrote is trusted")
	}
}

// R-S12, P6: a command in the background is told of once when it has ended; one that was at work when
// Parley was killed is told as interrupted after the next start, and not run again.
func TestBackgroundCommands(t *testing.T) {
	t.Parallel()
	w := newExecGateway(t)
	w.tg.Say(person, `call exec {"command": "while ! [ -e go ]; do sleep 0.1; done; echo 'all is done'", "background": true}`)
	w.told(person, "its id", func(texts []string) bool { return toldOf(texts, "runs in the background, with the id") })
	w.file("work/go", "")
	ended := func(words string) func([]string) bool {
		return func(texts []string) bool { return toldOf(texts, words) }
	}
	w.told(person, "its end", ended("has ended with exit code 0"))

	w.tg.Say(person, `call exec {"command": "echo $$ >> pids; sleep 300", "background": true}`)
	pid := w.writes("pids")
	w.endLater(pid)
	w.kill()
	w.start()
	w.told(person, "its interruption", ended("interrupted by a restart"))
	w.kill()
	w.start()
	w.tg.Say(person, "are you there")
	texts := w.told(person, "an answer", ended("heard are you there"))
	for _, words := range []string{"has ended with exit code 0", "interrupted by a restart"} {
		n := 0
		for _, text := range texts {
			n += strings.Count(text, words)
		}
		if n != 1 {
			t.Errorf("%q was told %d times: %q", words, n, texts)
		}
	}
	if again := w.writes("pids"); again != pid {
		t.Errorf("it was run as %q and as %q", pid, again)
	}
}

// A command in the background is listed, and /stop ends it and says so.
func TestStopCommands(t *testing.T) {
	t.Parallel()
	w := newExecGateway(t)
	w.tg.Say(person, `call exec {"command": "echo $$ > pid; exec sleep 4711", "background": true}`)
	pid := w.writes("pid")
	w.endLater(pid)
	w.told(person, "its id", func(texts []string) bool { return toldOf(texts, "with the id") })
	w.tg.Say(person, "/agents")
	w.told(person, "the list", func(texts []string) bool { return toldOf(texts, "sleep 4711") })
	w.tg.Say(person, "/stop")
	w.told(person, "the end", func(texts []string) bool { return toldOf(texts, "Stopped a background task") })
	waitFor(t, "the end of the process", func() bool { return syscall.Kill(number(pid), 0) != nil })
	w.tg.Say(person, "/agents")
	w.told(person, "an empty list", func(texts []string) bool { return toldOf(texts, "No background tasks are running") })
}

// R-S16: an owner is asked before a dangerous command; the question outlives a crash, and the command
// is run once. A yes for a prefix counts for the conversation, also after a crash, until it is revoked.
func TestApprovalOfCommands(t *testing.T) {
	t.Parallel()
	w := newExecGateway(t)
	w.tg.Say(person, `call exec {"command": "git clean -fd; echo ran >> ran"}`)
	q := w.asks(person, "git clean")
	if len(q.Buttons[0]) != 2 {
		t.Errorf("the choices are %+v", q.Buttons)
	}
	w.kill()
	w.start()
	w.tg.PressData(person, q.ID, q.Buttons[0][0].Data, telegramtest.As(person, "Ada"))
	if got := w.writes("ran"); got != "ran" {
		t.Errorf("it ran: %q", got)
	}

	runs := func(n int) string {
		command := fmt.Sprintf("touch file%d", n)
		w.tg.Say(person, fmt.Sprintf(`call exec {"command": %q, "network": true}`, command))
		return command
	}
	q = w.asks(person, runs(1))
	choices := []telegramtest.Button{}
	for _, row := range q.Buttons {
		choices = append(choices, row...)
	}
	if len(choices) != 4 || !strings.Contains(q.Text, "run touch … with access to the internet") {
		t.Fatalf("%q, %+v", q.Text, choices)
	}
	w.tg.PressData(person, q.ID, choices[2].Data, telegramtest.As(person, "Ada"))
	waitFor(t, "file1", func() bool { return there(w.work("file1")) })
	runs(2)
	waitFor(t, "file2", func() bool { return there(w.work("file2")) })
	w.kill()
	w.start()
	runs(3)
	waitFor(t, "file3", func() bool { return there(w.work("file3")) })
	w.tg.Say(person, "/approvals")
	w.told(person, "the list", func(texts []string) bool { return toldOf(texts, "1. run touch … with access to the internet") })
	w.tg.Say(person, "/approvals revoke all")
	w.told(person, "that it is revoked", func(texts []string) bool { return toldOf(texts, "Revoked") })
	w.asks(person, runs(4))
	if there(w.work("file4")) {
		t.Error("it ran unasked")
	}
}

// waitFor waits until what another process does has come about.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(waitTime); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("nothing of %s", what)
		}
	}
}

// R-S16, R-S17, D-074, D-075: in the sandbox that is chosen by itself, what developers do works, and
// the agent's standing rules, Parley's data and its secrets are out of reach, also where the text of a
// command does not show it.
func TestExecInSandbox(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.start()
	agents := w.file("AGENTS.md", "be kind\n")
	w.file("people/eve/notes.txt", "secret-canary\n")
	n := 0
	runs := func(command string) (said string) {
		t.Helper()
		n++
		mark := fmt.Sprintf("mark-%d-", n)
		w.tg.Say(person, fmt.Sprintf("call exec {\"command\": %q}", command+"; echo "+mark+"$?"))
		w.told(person, "the end of "+command, func(texts []string) bool {
			for _, text := range texts {
				if strings.Contains(text, mark) {
					said = text
				}
			}
			return said != ""
		})
		return said
	}
	if said := runs("git init -q x && cd x && touch a && git add a && git commit -q -m 'format disk docs' && git log --format=%an-%s; cd"); !strings.Contains(said, "Parley-format disk docs") {
		t.Errorf("git: %q", said)
	}
	if said := runs("/usr/bin/python3 -m venv --without-pip .venv && .venv/bin/python -c 'print(6*7)'"); there("/usr/bin/python3") && !strings.Contains(said, "42") {
		t.Errorf("venv: %q", said)
	}
	if said := runs("rm -rf x build/ && find . -name '*.tmp' -delete && ls"); strings.Contains(said, "x\n") {
		t.Errorf("rm: %q", said)
	}
	for _, trick := range []string{
		`f=AGENTS; echo evil | dd of=$(echo ../$f.md)`,
		`echo evil > evil; ln -f evil $(echo ../AGENTS.md)`,
		`ln -s $(echo ../AGENTS.md) link; echo evil >> link`,
		`/usr/bin/python3 -c $'open(\'../AGENTS.md\', \'a\').write(\'evil\')'`,
		`cd ..; mv -f $(echo AGENTS.md) work/`,
	} {
		runs(trick)
		if text, err := os.ReadFile(agents); err != nil || string(text) != "be kind\n" {
			t.Errorf("after %s: %q, %v", trick, text, err)
		}
	}
	said := runs(fmt.Sprintf("cd; ls -a %s; cat %s/config.json; cat ../people/eve/notes.txt; ls ../.parley; env; cat /proc/*/environ | tr '\\0' ' '", w.dir, w.dir))
	for _, secret := range []string{canaryKey, "secret-canary", "parley.db", "channels", "undo"} {
		if strings.Contains(said, secret) {
			t.Errorf("a command sees %q: %q", secret, said)
		}
	}
	if said := runs("curl -sS -m 5 " + w.base() + "/health; echo"); strings.Contains(said, "ok\n") {
		t.Errorf("a command reaches the gateway: %q", said)
	}
}
