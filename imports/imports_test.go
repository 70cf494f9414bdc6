package imports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
	"parley/workspace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// installations are the folders of testdata: shapes of real ones, which OpenClaw 2026.9.2 and picoclaw
// 0.3.0 wrote, and nanobot's and older OpenClaw's as their sources have it.
func installations() map[string]string {
	return map[string]string{"openclaw": "openclaw", "clawdbot": "openclaw", "nanobot": "nanobot", "picoclaw": "picoclaw"}
}

// target returns a new Parley in dir, with its store in a real file.
func target(dir string) Target {
	return Target{
		DataDir: dir, Workspace: filepath.Join(dir, "workspace"), Config: filepath.Join(dir, "config.json"),
		NewConfig: []byte("// first\n{}\n"), Zone: time.UTC, MinInterval: 10 * time.Second, Now: func() time.Time { return now },
		Check: func([]byte) error { return nil },
		Open: func(ctx context.Context) (store.Store, func() error, error) {
			b, err := bolt.Open(ctx, bolt.Config{Dir: dir})
			if err != nil {
				return nil, nil, err
			}
			return b, b.Close, nil
		},
	}
}

func plan(t *testing.T, system, path string, to Target) *Plan {
	t.Helper()
	found, err := Read(Options{System: system, Path: path, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compare(t.Context(), found, to)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t *testing.T, system, path string, to Target) *Plan {
	t.Helper()
	p := plan(t, system, path, to)
	if err := p.Apply(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	return p
}

// tree returns the files below dir with their content, without those of the store.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() || name == "lock" || strings.HasPrefix(name, "parley.db") || strings.HasPrefix(name, "workspace/.parley/") {
			return err
		}
		text, err := os.ReadFile(path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// jobs returns the jobs in the store of to.
func jobs(t *testing.T, to Target) []scheduler.Job {
	t.Helper()
	s, done, err := to.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	}()
	all, err := newScheduler(to, s).Jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b scheduler.Job) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// TestReports compares all that is made of each installation with golden files: the report, the
// config, the workspace and the jobs.
func TestReports(t *testing.T) {
	for name, system := range installations() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			to := target(dir)
			p := apply(t, system, "testdata/"+name, to)
			var b strings.Builder
			p.Print(&b, "parley import")
			for _, file := range slices.Sorted(mapKeys(tree(t, dir))) {
				text := tree(t, dir)[file]
				inside, ok := strings.CutPrefix(file, "workspace/")
				if ok && text == workspace.First(inside) || file == receiptsName {
					continue
				}
				fmt.Fprintf(&b, "\n=== %s\n%s", file, text)
			}
			for _, j := range jobs(t, to) {
				j.Created, j.Next = time.Time{}, time.Time{}
				text, err := json.Marshal(j)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "\n=== job %s\n", text)
			}
			here, err := filepath.Abs("testdata")
			if err != nil {
				t.Fatal(err)
			}
			got := strings.NewReplacer(dir, "DATA", here, "testdata").Replace(b.String())
			golden := "testdata/" + name + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%s: %v\n%s", golden, err, got)
			}
			if strings.Contains(got, "SECRET") {
				t.Error("a secret was copied or shown")
			}
		})
	}
}

func mapKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestSourceIsOnlyRead compares bytes and times of an installation before and after an import.
func TestSourceIsOnlyRead(t *testing.T) {
	type state struct {
		text string
		mode fs.FileMode
		time time.Time
	}
	for name, system := range installations() {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/"+name)); err != nil {
			t.Fatal(err)
		}
		look := func() map[string]state {
			all := map[string]state{}
			err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				s := state{mode: info.Mode(), time: info.ModTime()}
				if !d.IsDir() {
					text, err := os.ReadFile(path)
					if err != nil {
						return err
					}
					s.text = string(text)
				}
				all[path] = s
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		before := look()
		apply(t, system, dir, target(t.TempDir()))
		if after := look(); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the source has changed", name)
		}
	}
}

// TestAgain checks that a second import does nothing, also after people have changed, moved and removed
// what the first brought.
func TestAgain(t *testing.T) {
	for name, system := range installations() {
		to := target(t.TempDir())
		apply(t, system, "testdata/"+name, to)
		before, scheduled := tree(t, to.DataDir), jobs(t, to)
		again := plan(t, system, "testdata/"+name, to)
		if !again.Nothing() {
			t.Errorf("%s: not nothing: %+v", name, again.Items)
		}
		if err := again.Apply(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(before, tree(t, to.DataDir)) || !reflect.DeepEqual(scheduled, jobs(t, to)) {
			t.Errorf("%s: a second import has changed something", name)
		}
		for _, file := range []string{"workspace/SOUL.md", "config.json"} {
			if err := os.WriteFile(filepath.Join(to.DataDir, file), []byte("mine\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll(filepath.Join(to.Workspace, "imported")); err != nil {
			t.Fatal(err)
		}
		if p := plan(t, system, "testdata/"+name, to); !p.Nothing() {
			t.Errorf("%s: what was changed since comes again: %+v", name, p.Items)
		}
	}
}

// TestSettingsFollowConfig checks that the report says of channels, models and owners what becomes of the config that
// has them, and what to do if that is not the one which Parley reads.
func TestSettingsFollowConfig(t *testing.T) {
	report := func(p *Plan) string {
		var b strings.Builder
		p.Print(&b, "parley import")
		return b.String()
	}
	settings := func(p *Plan) (actions []Action) {
		for _, i := range p.Items {
			kind, _, _ := strings.Cut(i.What, " ")
			if slices.Contains([]string{"channel", "model", "owner"}, kind) && (i.Action != Left || p.settings == Left) {
				actions = append(actions, i.Action)
			}
		}
		return slices.Compact(actions)
	}
	to := target(t.TempDir())
	if got := settings(apply(t, "openclaw", "testdata/openclaw", to)); !slices.Equal(got, []Action{Taken, Changed}) {
		t.Errorf("into a new Parley: %q", got)
	}
	again := plan(t, "openclaw", "testdata/openclaw", to)
	if got := settings(again); !slices.Equal(got, []Action{There}) || strings.Contains(report(again), "\ntaken\n") {
		t.Errorf("again: %q\n%s", got, report(again))
	}

	to = target(t.TempDir())
	if err := os.WriteFile(to.Config, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(to.DataDir, "config.openclaw.json")
	first := apply(t, "openclaw", "testdata/openclaw", to)
	if got := settings(first); !slices.Equal(got, []Action{Conflict}) {
		t.Errorf("beside a config: %q", got)
	}
	second := plan(t, "openclaw", "testdata/openclaw", to)
	if got := settings(second); !slices.Equal(got, []Action{There}) {
		t.Errorf("beside a config, again: %q", got)
	}
	if done := report(first); !strings.Contains(done, " 3. Copy by hand what you want of "+beside) || !strings.Contains(done, " 4. Run") {
		t.Errorf("what to do next:\n%s", done)
	}
	const merge = "Parley does not read config.openclaw.json: copy by hand what you want of it into "
	for name, text := range map[string]string{"first": report(first), "second": report(second)} {
		if !strings.Contains(text, beside) || !strings.Contains(text, merge+to.Config) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	if err := os.Remove(beside); err != nil { // it was done
		t.Fatal(err)
	}
	if text := report(plan(t, "openclaw", "testdata/openclaw", to)); strings.Contains(text, merge) {
		t.Errorf("afterwards:\n%s", text)
	}

	to = target(t.TempDir())
	to.Check = func([]byte) error { return errors.New("no") }
	if got := settings(apply(t, "openclaw", "testdata/openclaw", to)); !slices.Equal(got, []Action{Left}) {
		t.Errorf("a config that cannot be used: %q", got)
	}
}

// TestExisting checks that nothing of a Parley in use is overwritten.
func TestExisting(t *testing.T) {
	to := target(t.TempDir())
	mine := map[string]string{
		"config.json": `{"owners": []}`, "workspace/SOUL.md": "My soul.\n", "workspace/MEMORY.md": "My memory.\n",
		"workspace/skills/sort-receipts/SKILL.md": "My skill.\n", "workspace/USER.md": workspace.First("USER.md"),
	}
	for name, text := range mine {
		path := filepath.Join(to.DataDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := apply(t, "openclaw", "testdata/openclaw", to)
	after := tree(t, to.DataDir)
	for name, text := range mine {
		if name == "workspace/USER.md" { // which nobody had edited
			text = "- Name: Ann\n"
		}
		if after[name] != text {
			t.Errorf("%s is %q", name, after[name])
		}
	}
	for name, want := range map[string]string{
		"workspace/imported/openclaw/SOUL.md": "Dry, but kind.", "workspace/imported/openclaw/MEMORY.md": "Dr. Who",
		"workspace/imported/openclaw/skills/sort-receipts/SKILL.md": "pdftotext", "config.openclaw.json": "${TELEGRAM_BOT_TOKEN}",
	} {
		if !strings.Contains(after[name], want) {
			t.Errorf("%s is %q", name, after[name])
		}
	}
	conflicts := 0
	for _, i := range p.Items {
		if i.Action == Conflict && !strings.HasPrefix(i.To, "config.openclaw.json: ") {
			conflicts++
		}
	}
	if conflicts != 4 {
		t.Errorf("%d conflicts: %+v", conflicts, p.Items)
	}
	if p := plan(t, "openclaw", "testdata/openclaw", to); !p.Nothing() {
		t.Errorf("again: %+v", p.Items)
	}
}

// TestUntrusted checks that what others wrote of is untrusted content, and the rest is not.
func TestUntrusted(t *testing.T) {
	to := target(t.TempDir())
	p := apply(t, "openclaw", "testdata/openclaw", to)
	w, err := workspace.Open(to.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, f := range p.files {
		at, err := w.Named(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Contains(f.Name, "/conversations/") || strings.Contains(f.Name, "/memory/")
		if _, found := w.Origin(at); found != want {
			t.Errorf("%s: untrusted: %v", f.Name, found)
		}
	}
}

// TestLocked checks that nothing is imported while a gateway has the data.
func TestLocked(t *testing.T) {
	to := target(t.TempDir())
	_, done, err := to.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = done() }()
	if err := plan(t, "nanobot", "testdata/nanobot", to).Apply(t.Context(), to); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
	if all := tree(t, to.DataDir); len(all) > 0 {
		t.Errorf("written: %v", all)
	}
}

// TestAllOrNothing lets an import fail at its end, and wants everything as it was.
func TestAllOrNothing(t *testing.T) {
	to := target(t.TempDir())
	if err := os.MkdirAll(to.Workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(to.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Seed(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p := plan(t, "picoclaw", "testdata/picoclaw", to)
	if err := os.WriteFile(to.Config, []byte("somebody was faster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, to.DataDir)
	if err := p.Apply(t.Context(), to); err == nil || !strings.Contains(err.Error(), "has changed meanwhile") {
		t.Fatal(err)
	}
	if after := tree(t, to.DataDir); !reflect.DeepEqual(before, after) {
		t.Errorf("something stayed: %v", slices.Sorted(mapKeys(after)))
	}
	if all := jobs(t, to); len(all) > 0 {
		t.Errorf("jobs stayed: %v", all)
	}
}

// TestKilled kills an import at each step, does it again, and wants what one import brings.
func TestKilled(t *testing.T) {
	const dirName, stepName = "PARLEY_IMPORT_DIR", "PARLEY_IMPORT_STEP"
	if dir := os.Getenv(dirName); dir != "" {
		to := target(dir)
		steps, err := strconv.Atoi(os.Getenv(stepName))
		if err != nil {
			t.Fatal(err)
		}
		to.step = func() {
			if steps--; steps == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
		apply(t, "picoclaw", "testdata/picoclaw", to)
		return
	}
	whole := target(storetest.TempDir(t))
	apply(t, "picoclaw", "testdata/picoclaw", whole)
	want, wantJobs := tree(t, whole.DataDir), jobs(t, whole)
	delete(want, receiptsName) // what was there already after the kill is not in it
	for step := 1; ; step++ {
		dir := storetest.TempDir(t)
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), dirName+"="+dir, fmt.Sprint(stepName, "=", step))
		out, err := child.CombinedOutput()
		end, killed := errors.AsType[*exec.ExitError](err)
		if killed && end.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s", out)
		}
		to := target(dir)
		apply(t, "picoclaw", "testdata/picoclaw", to)
		got, gotJobs := tree(t, dir), jobs(t, to)
		delete(got, receiptsName)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("step %d: %v, want %v", step, slices.Sorted(mapKeys(got)), slices.Sorted(mapKeys(want)))
		}
		if !reflect.DeepEqual(gotJobs, wantJobs) {
			t.Errorf("step %d: jobs %v, want %v", step, gotJobs, wantJobs)
		}
		if !killed {
			if step < 10 {
				t.Errorf("only %d steps", step)
			}
			return
		}
	}
}

// TestHostile imports a folder that is out to do harm.
func TestHostile(t *testing.T) {
	outside := t.TempDir()
	for _, name := range []string{"secret.md", "sub/SKILL.md", "MEMORY.md"} {
		path := filepath.Join(outside, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("OUTSIDE\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		put(name, "")
		if err := errors.Join(os.Remove(filepath.Join(dir, name)), os.Symlink(to, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	put("config.json", `{"agents": {"defaults": {"workspace": "~/.picoclaw/workspace", "model_name": "\u001b[31mred"}},
		"channel_list": {"telegram": {"enabled": true, "type": "telegram", "allow_from": [{"a": 1}, null, "\u001b]0;title\u0007", 42],
		"settings": {"token": ["no"]}}}, "model_list": "none", "tools": {"mcp": {"servers": {"..": {"command": "x"}, "a": 7}}}}`)
	put(".security.yml", "a: &a [x]\nb: *a\n\tbroken")
	link(filepath.Join(outside, "secret.md"), "workspace/SOUL.md")
	link(outside, "workspace/memory")
	link("../../..", "workspace/skills/up")
	link(filepath.Join(outside, "sub"), "workspace/skills/linked")
	put("workspace/skills/..sly/SKILL.md", "---\ndescription: x\n---\nx\n")
	put("workspace/skills/a b\nc/SKILL.md", "---\ndescription: x\n---\nx\n")
	put("workspace/skills/deep/SKILL.md", "---\ndescription: [x\n---\nx\n")
	put("workspace/skills/ok/SKILL.md", "---\ndescription: fine\n---\nx\n")
	put("workspace/skills/ok/\u202egnp.exe", "x")
	link("/etc/passwd", "workspace/skills/ok/passwd")
	put("workspace/cron/jobs.json", `{"jobs": [7, {"id": "../../x", "name": "a\u0000b", "schedule": {"kind": "cron", "expr": "* * * * * * *"}},
		{"schedule": {"kind": "every", "everyMs": -5}}, {"schedule": {"kind": "at", "atMs": 1e300}, "payload": {"message": "x"}}, {]}`)
	put("workspace/sessions/bad.jsonl", "{\n[[[[\n")
	put("workspace/sessions/nul.jsonl", "\x00")
	if err := syscall.Mkfifo(filepath.Join(dir, "workspace/USER.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(dir, "workspace/HEARTBEAT.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(1<<40), big.Close()); err != nil {
		t.Fatal(err)
	}
	to := target(t.TempDir())
	p := apply(t, "picoclaw", dir, to)
	var b bytes.Buffer
	p.Print(&b, "parley import")
	if strings.ContainsFunc(b.String(), func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' || r == 0x7f }) {
		t.Errorf("the report has control characters: %q", b.String())
	}
	for name, text := range tree(t, to.DataDir) {
		if strings.Contains(text, "OUTSIDE") || strings.Contains(text, "root:") {
			t.Errorf("%s is from outside", name)
		}
	}
	for _, want := range []string{
		"file SOUL.md: it is a link, which is not followed", "skill up: it is a link", "skill linked: it is a link",
		"skill ok passwd: it is a link", "file USER.md: it is no regular file", "file HEARTBEAT.md: it is too large",
		"tokens and keys: it is not YAML", "jobs: it is not JSON", "conversation bad: none of its 2 lines can be read",
		"conversation nul: it is not text", "skill deep: it is not YAML", "channel telegram: it has no token",
		"note memory: it is a link", "MCP server ..: its name cannot be used", "file skills/ok/SKILL.md",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(b.String())
	}
	for _, c := range []struct{ text, want string }{
		{"", "no config.json"},
		{"{", "not JSON"},
		{strings.Repeat("[", 1<<20), "not JSON"},
		{`{"a": 1} x`, "follows its end"},
	} {
		dir := t.TempDir()
		if c.text != "" {
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Read(Options{System: "picoclaw", Path: dir}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.10q: %v", c.text, err)
		}
	}
}

// TestOwner checks that --owner makes somebody an owner who may talk there, and nobody else.
func TestOwner(t *testing.T) {
	o := Options{System: "nanobot", Path: "testdata/nanobot", Owners: []string{"telegram:123456789"}, Now: now}
	found, err := Read(o)
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Settings.Owners; len(got) != 1 || found.Jobs[0].By.Role != chat.Owner {
		t.Errorf("owners %v, by %v", got, found.Jobs[0].By)
	}
	for _, owner := range []string{"telegram:1", "discord:123456789", "web", "telegram:*"} {
		o.Owners = []string{owner}
		if _, err := Read(o); err == nil || !strings.Contains(err.Error(), "may not talk there") {
			t.Errorf("%s: %v", owner, err)
		}
	}
}

// TestOwnerOfOpenClaw checks the same where the other program has owners of its own, whom --owner must not make more.
func TestOwnerOfOpenClaw(t *testing.T) {
	read := func(allow, owner string) (*Installation, error) {
		dir := t.TempDir()
		text := `{"commands": {"ownerAllowFrom": ["telegram:5"]}, "channels": {"telegram": {"botToken": "1:SECRET", "allowFrom": ` + allow + `}}}`
		if err := os.WriteFile(filepath.Join(dir, "openclaw.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Read(Options{System: "openclaw", Path: dir, Owners: []string{owner}, Now: now})
	}
	_, err := read(`["42"]`, "telegram:999")
	const want = "telegram:999 may not talk there, and does not become an owner here: telegram:42, telegram:5 may talk there"
	if err == nil || err.Error() != want {
		t.Errorf("a stranger: %v, want %q", err, want)
	}
	for allow, owner := range map[string]string{`["42"]`: "telegram:42", `[]`: "telegram:5", `["*"]`: "telegram:7"} {
		found, err := read(allow, owner)
		if err != nil {
			t.Errorf("%s: %v", owner, err)
			continue
		}
		_, id, _ := cutLast(owner)
		if !slices.Contains(found.Settings.Channels["telegram"].Allow, id) || !slices.Contains(found.Settings.Owners, owner) {
			t.Errorf("%s: allow %v, owners %v", owner, found.Settings.Channels["telegram"].Allow, found.Settings.Owners)
		}
		told := 0
		for _, i := range found.Notes {
			if i.What == "owner "+owner && i.Action == Taken {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the report names the new owner %s %d times: %+v", owner, told, found.Notes)
		}
	}
}

// TestOldDestination checks that a job is told where it was told there, whether its payload says so, as in older
// versions, or its delivery.
func TestOldDestination(t *testing.T) {
	for name, job := range map[string]string{
		"payload":  `"payload": {"kind": "agentTurn", "message": "x", "deliver": true, "channel": "telegram", "to": "43"}`,
		"delivery": `"payload": {"kind": "agentTurn", "message": "x"}, "delivery": {"channel": "telegram", "to": "43"}`,
		"both": `"payload": {"kind": "agentTurn", "message": "x", "channel": "telegram", "to": "42"},
			"delivery": {"channel": "telegram", "to": "43"}`,
		"last": `"payload": {"kind": "agentTurn", "message": "x", "channel": "telegram", "to": "43"}, "delivery": {"channel": "last"}`,
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"openclaw.json":  `{"channels": {"telegram": {"botToken": "1:SECRET", "allowFrom": ["42", "43"]}}}`,
			"cron/jobs.json": `{"jobs": [{"id": "a", "schedule": {"kind": "every", "everyMs": 3600000}, ` + job + `}]}`,
		} {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found, err := Read(Options{System: "openclaw", Path: dir, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Jobs) != 1 || found.Jobs[0].At.Session() != "telegram:43" || found.Jobs[0].By.ID != "43" {
			t.Errorf("%s: %+v, %+v", name, found.Jobs, found.Notes)
		}
	}
}

func TestRelax(t *testing.T) {
	for in, want := range map[string]string{
		"{a: 1, $b_2: 'it\\'s \"x\"', // c\n c: [1, 2,], /* , */ }": `{"$b_2":"it's \"x\"","a":1,"c":[1,2]}`,
		`{"url": "http://x//y", "t": true, "n": null}`:              `{"n":null,"t":true,"url":"http://x//y"}`,
		"\ufeff{\"a\": 'b\\\\'}":                                    `{"a":"b\\"}`,
	} {
		v, err := parseJSON([]byte(in))
		got, _ := json.Marshal(v.any)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	for _, bad := range []string{"{a b: 1}", "{'a: 1}", "{a: 'x}", "[1 2]", "'", "\"\\"} {
		if _, err := parseJSON([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// TestShortSecrets: what may be a secret in the arguments, the command or the address of an MCP server is not copied,
// however short it is; what cannot be one is.
func TestShortSecrets(t *testing.T) {
	for _, c := range []struct {
		server string
		kept   []string // what the config has
	}{
		{`{"command": "npx", "args": ["-y", "@scope/server-files", "--api-key", "HIDE1", "--dir", "/home/ann/notes", "-v"]}`, []string{"@scope/server-files", "--api-key", "--dir", "/home/ann/notes", "-v"}},
		{`{"command": "docker", "args": ["run", "-i", "--rm", "-e", "GH_PAT=HIDE2", "--env", "PIN=HIDE3", "--env=X_TOKEN=HIDE4", "mcp/github"]}`, []string{"run", "-i", "--rm", "-e", "--env", "mcp/github"}},
		{`{"command": "x", "args": ["--token=HIDE5", "-H", "X-Mine: HIDE6", "--password", "HIDE7", "--auth-token", "HIDE8", "--verbose", "--port", "8080"]}`, []string{"-H", "--password", "--auth-token", "--verbose", "--port", "8080"}},
		{`{"command": "npx", "args": ["mcp-remote", "https://mcp.example.com/s/HIDE9a7/mcp", "https://mcp.example.com/sse?k=HIDE10", "https://a:HIDE11@example.com", "https://mcp.example.com/v1/sse"]}`, []string{"mcp-remote", "https://mcp.example.com/v1/sse"}},
		{`{"command": "x", "args": ["sk-HIDE12abc", "Hide13AbC9xyz"]}`, nil},
		{`{"command": "server --key HIDE14 --fast"}`, nil},
		{`{"url": "https://mcp.example.com/HIDE15x2/mcp"}`, nil},
		{`{"url": "https://mcp.example.com/mcp?key=HIDE16"}`, nil},
		{`{"url": "https://mcp.example.com/v1beta/mcp"}`, []string{"https://mcp.example.com/v1beta/mcp"}},
		{`{"command": "uvx", "args": ["mcp-server-git", "--repository", "~/src", "--key", "--next", "word"]}`, []string{"mcp-server-git", "--repository", "~/src", "--key", "--next", "word"}},
	} {
		v, err := parseJSON([]byte(c.server))
		if err != nil {
			t.Fatal(err)
		}
		s := newSettings()
		s.note = func(Item) {}
		s.addServer("one", v, "mcp")
		text, err := s.JSON("a test")
		if err != nil {
			t.Fatal(err)
		}
		if s.Servers["one"] == nil || strings.Contains(strings.ToUpper(string(text)), "HIDE") {
			t.Errorf("%s becomes\n%s", c.server, text)
		}
		for _, kept := range c.kept {
			if !strings.Contains(string(text), `"`+kept+`"`) {
				t.Errorf("%s: %s is not kept in\n%s", c.server, kept, text)
			}
		}
	}
}
