package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/backup"
	"parley/channels/telegram/telegramtest"
	"parley/config"
	"parley/store/bolt"
)

// quiet wants nothing to change in the chats of w while the house starts, ends
// its start and has had the time of some polls.
func (w *testGateway) quiet(chats []int64, what func()) {
	w.t.Helper()
	before := map[int64]int{}
	for _, c := range chats {
		before[c] = len(botTexts(w.tg.Chat(c)))
	}
	what()
	for _, c := range chats {
		if texts := botTexts(w.tg.Chat(c)); len(texts) != before[c] {
			w.t.Errorf("chat %d was told again: %q", c, texts[before[c]:])
		}
	}
}

// exported returns a conversation as "parley sessions export" prints it.
func (w *testGateway) exported(session string) string {
	w.t.Helper()
	out, code := w.run("", "sessions", "export", session)
	if code != 0 {
		w.t.Fatalf("export %s: exit code %d: %s", session, code, out)
	}
	return out
}

// TestBackupUnderLoad: P20. A backup made while people talk restores to the
// same conversations, and the house that is restored says and answers nothing
// again. What others left that were killed is swept away.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	if err := errors.Join(os.MkdirAll(filepath.Join(w.dir, ".backup-1", "backup"), 0o700), os.MkdirAll(filepath.Join(w.dir, ".restore-1"), 0o700)); err != nil {
		t.Fatal(err)
	}
	w.start()
	for i := range 3 {
		w.tg.Say(person, fmt.Sprint("before ", i))
		w.says(person, fmt.Sprint("heard before ", i))
	}
	if err := os.WriteFile(filepath.Join(w.dir, "workspace", "notes.txt"), []byte("remember"), 0o600); err != nil {
		t.Fatal(err)
	}
	talking := make(chan struct{})
	var people sync.WaitGroup
	for p := range int64(5) {
		people.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-talking:
					return
				default:
				}
				w.tg.Say(person+1+p, fmt.Sprint("loud ", i))
				w.says(person+1+p, fmt.Sprint("heard loud ", i))
			}
		})
	}
	file := filepath.Join(t.TempDir(), "parley.backup")
	out, code := w.run("", "backup", file)
	close(talking)
	people.Wait()
	if info, err := os.Stat(file); code != 0 || err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(out, "secrets") {
		t.Fatalf("backup: exit code %d, %v: %s", code, err, out)
	}
	session := fmt.Sprintf("telegram:%d", person)
	want := w.exported(session)
	if out, code := w.run("", "restore", file); code == 0 {
		t.Errorf("restored under a running gateway: %s", out)
	}
	if w.stop() != 0 {
		t.Error("the gateway did not end well")
	}
	if out, code := w.run("", "restore", file); code == 0 {
		t.Errorf("restored over data without --force: %s", out)
	}
	if out, code := w.run("", "restore", "--force", "--yes", file); code != 0 || !strings.Contains(out, "before-restore") || !strings.Contains(out, "restored "+filepath.Join(w.dir, "parley.db")) || !strings.Contains(out, "kept ") {
		t.Fatalf("restore: exit code %d: %s", code, out)
	}
	if got := w.exported(session); got != want {
		t.Errorf("the conversation is another one:\n%s\nwant\n%s", got, want)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "workspace", "notes.txt")); string(b) != "remember" {
		t.Errorf("the workspace was not restored: %q, %v", b, err)
	}
	if drafts, err := filepath.Glob(filepath.Join(w.dir, ".*")); err != nil || len(drafts) > 0 {
		t.Errorf("left there: %q, %v", drafts, err)
	}
	everybody := []int64{person, person + 1, person + 2, person + 3, person + 4, person + 5}
	w.quiet(everybody[1:], func() {
		w.start()
		w.tg.Say(person, "after")
		w.says(person, "heard after")
	})
}

// TestRestoredStoreIsSettled: P20. What waited when the backup was made was
// sent and answered since: it is put aside, and told of.
func TestRestoredStoreIsSettled(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	w.tg.Fail("sendMessage", telegramtest.Fault{Times: -1, Code: 500, Chat: person + 1})
	w.tg.Say(person+1, "slow")
	w.askedFor(1)
	w.logs("reply not sent yet", 1)
	file := filepath.Join(t.TempDir(), "b")
	if out, code := w.run("", "backup", file); code != 0 {
		t.Fatalf("backup: %d: %s", code, out)
	}
	w.tg.Heal()
	w.says(person+1, "heard slow")
	w.stop()
	out, code := w.run("", "restore", "--force", "--yes", file)
	if code != 0 || !strings.Contains(out, "replies 1") {
		t.Fatalf("restore: %d: %s", code, out)
	}
	w.quiet([]int64{person + 1}, func() {
		w.start()
		w.tg.Say(person, "/status")
		w.told(person, "what was put aside", func(texts []string) bool {
			return len(texts) > 0 && strings.Contains(texts[len(texts)-1], "it waited when the backup was made")
		})
	})
}

// TestDamagedStoreIsReplaced: P18. A damaged store is moved aside, the latest
// copy that is whole takes its place, also when that was cut off in the middle,
// and the owner is told.
func TestDamagedStoreIsReplaced(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	w.tg.Say(person, "one")
	w.says(person, "heard one")
	w.stop()
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: w.dir})
	if err == nil {
		err = backup.Copy(t.Context(), w.dir, s.Backup)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	newest := filepath.Join(w.dir, "backups", "parley-99990101-000000.db") // a copy that is no use
	if err := os.WriteFile(newest, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, backup.StoreFile), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.more["workspace"] = filepath.Join(w.dir, "lock", "in a file")
	w.config()
	if out, code := w.run("", "status"); code != exitFailure {
		t.Errorf("status: %d %s", code, out)
	}
	delete(w.more, "workspace")
	w.config()
	w.start()
	w.told(person, "that the store was damaged", func(texts []string) bool {
		return len(texts) > 0 && strings.Contains(texts[len(texts)-1], "My store was damaged")
	})
	w.tg.Say(person, "two")
	w.says(person, "heard two")
	if found, _ := filepath.Glob(filepath.Join(w.dir, "damaged-*", backup.StoreFile)); len(found) != 1 {
		t.Errorf("the damaged file is not aside: %q", found)
	}
	if out := w.exported(fmt.Sprintf("telegram:%d", person)); !strings.Contains(out, "heard one") || !strings.Contains(out, "heard two") {
		t.Errorf("the conversation did not go on: %s", out)
	}
}

// TestServiceFallsBack: a service whose config went bad goes on with the last
// one that worked, tells the owner, and takes the mended one.
func TestServiceFallsBack(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.args = []string{"run", "--service"}
	w.start()
	w.tg.Say(person, "hello")
	w.says(person, "heard hello")
	w.stop()
	file := filepath.Join(w.dir, "config.json")
	good, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(`{ "chanels": {} }`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, code := w.run("", "run"); code != exitUsage {
		t.Errorf("run with a bad config: exit code %d: %s", code, out)
	}
	w.start()
	w.told(person, "what is wrong", func(texts []string) bool {
		return len(texts) > 0 && strings.Contains(texts[len(texts)-1], "chanels: unknown key")
	})
	w.tg.Say(person, "still there?")
	w.says(person, "heard still there?")
	mended := strings.Replace(string(good), `"timezone":"UTC"`, `"timezone":"UTC","log":{"level":"debug"}`, 1)
	if err := os.WriteFile(file, []byte(mended), 0o600); err != nil {
		t.Fatal(err)
	}
	w.logs("config reloaded", 1)
	if w.stop() != 0 {
		t.Error("it did not end well")
	}
	if b, _ := os.ReadFile(config.LastGood(file)); string(b) != mended {
		t.Errorf("the last good config is %s", b)
	}
}
