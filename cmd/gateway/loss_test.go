package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/backup"
	"parley/store/bolt"
)

// spoilStore flips a bit wherever the store says text, and leaves its size and
// time as they were: damage at rest.
func (w *testGateway) spoilStore(text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, backup.StoreFile)
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		w.t.Fatal(err)
	}
	n := bytes.Count(data, []byte(text))
	for at := range data {
		if bytes.HasPrefix(data[at:], []byte(text)) {
			data[at] ^= 1
		}
	}
	err = errors.Join(os.WriteFile(path, data, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
	if err != nil || n == 0 {
		w.t.Fatalf("%q was found %d times: %v", text, n, err)
	}
}

// losePage overwrites with zeros every page in which the store says text, and
// leaves its time as it was: what a disk may do at rest.
func (w *testGateway) losePage(text string) {
	w.t.Helper()
	const pageSize = 4096
	path := filepath.Join(w.dir, backup.StoreFile)
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		w.t.Fatal(err)
	}
	lost := 0
	for at := bytes.Index(data, []byte(text)); at >= 0; at = bytes.Index(data, []byte(text)) {
		clear(data[at/pageSize*pageSize:][:pageSize])
		lost++
	}
	err = errors.Join(os.WriteFile(path, data, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
	if err != nil || lost == 0 {
		w.t.Fatalf("%q was on %d pages: %v", text, lost, err)
	}
}

// copyStore makes a copy as each day does.
func (w *testGateway) copyStore() string {
	w.t.Helper()
	s, err := bolt.Open(w.t.Context(), bolt.Config{Dir: w.dir})
	if err == nil {
		err = errors.Join(backup.Copy(w.t.Context(), w.dir, s.Backup), s.Close())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return backup.Copies(w.dir)[0]
}

// TestDamageAtRest: P18, P21. What a disk lost while the gateway was stopped is
// found while it runs. The owner is told once, status, health and doctor say so,
// and a transcript shows what is missing.
func TestDamageAtRest(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	for _, text := range []string{"one", "the victim", "three"} {
		w.tg.Say(person, text)
		w.says(person, "heard "+text)
	}
	w.stop()
	w.spoilStore(`"text":"heard the victim`)
	w.start()
	told := func(texts []string) (n int) {
		for _, text := range texts {
			n += strings.Count(text, "My store is damaged on disk")
		}
		return n
	}
	w.told(person, "that the store is damaged", func(texts []string) bool { return told(texts) == 1 })
	session := fmt.Sprintf("telegram:%d", person)
	if out, code := w.run("", "sessions", "show", session); code != 0 || !strings.Contains(out, "[entries 5 to 6 could not be read]") ||
		!strings.Contains(out, "heard one") || !strings.Contains(out, "heard three") {
		t.Errorf("show: %d\n%s", code, out)
	}
	if out := w.exported(session); !strings.Contains(out, "could not be read]") {
		t.Errorf("export: %s", out)
	}
	for command, want := range map[string]int{"status": 0, "health": 0, "doctor": exitFailure} {
		if out, code := w.run("", command); code != want || !strings.Contains(out, "cannot be read") {
			t.Errorf("%s: %d\n%s", command, code, out)
		}
	}
	w.stop()
	w.start()
	w.tg.Say(person, "/status")
	texts := w.told(person, "a status that tells of the damage", func(texts []string) bool {
		return strings.Contains(texts[len(texts)-1], "entries cannot be read")
	})
	if told(texts) != 1 {
		t.Errorf("the owner was told anew: %q", texts)
	}
}

// TestLostEndOfConversation: P21. A conversation whose last page the disk has lost
// goes on: the next message is answered, by a model that is told of the damage. The
// log, transcripts and searches show what is missing.
func TestLostEndOfConversation(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	for i := range 12 {
		text := fmt.Sprintf("number %d %s", i, strings.Repeat("and so on ", 20))
		w.tg.Say(person, text)
		w.says(person, "heard "+strings.TrimSpace(text))
	}
	w.stop()
	w.losePage(`"text":"heard number 11 `)
	w.start()
	w.tg.Say(person, "after the loss")
	w.says(person, "heard , after the loss") // the first is what the model is told of the damage
	w.stop()
	w.start() // what was said since is read again
	w.tg.Say(person, "and now?")
	w.says(person, "heard and now?")
	asked := w.llm.Requests()
	shown := fmt.Sprint(asked[len(asked)-1].Messages)
	for _, want := range []string{"number 3 ", "It is damaged on disk and cannot be read.", "after the loss", "heard , after the loss"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the model is not told %q: %s", want, shown)
		}
	}
	for _, want := range []string{"a part of a session is damaged and left out", "the end of a log cannot be read"} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log does not tell that %s", want)
		}
	}
	session := fmt.Sprintf("telegram:%d", person)
	if out, code := w.run("", "sessions", "show", session); code != 0 || strings.Count(out, "could not be read]") != 1 ||
		!strings.Contains(out, "heard number 3 ") || !strings.Contains(out, "heard , after the loss") {
		t.Errorf("show: %d\n%s", code, out)
	}
	w.tg.Say(person, "/search after the loss")
	w.told(person, "that a part could not be searched", func(texts []string) bool {
		last := texts[len(texts)-1]
		return strings.Contains(last, "heard , after the loss") && strings.Contains(last, "A part of this conversation is damaged on disk")
	})
}

// TestBrokenHeadIsReplaced: P18. A store whose head is broken after a clean end
// is set aside, and the latest copy takes its place.
func TestBrokenHeadIsReplaced(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	w.tg.Say(person, "one")
	w.says(person, "heard one")
	w.stop()
	w.copyStore()
	path := filepath.Join(w.dir, backup.StoreFile)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[40] ^= 1
	data[4096+40] ^= 1
	if err := errors.Join(os.WriteFile(path, data, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.told(person, "that the store was damaged", func(texts []string) bool {
		return strings.Contains(texts[len(texts)-1], "My store was damaged")
	})
	w.tg.Say(person, "two")
	w.says(person, "heard two")
	if found, _ := filepath.Glob(filepath.Join(w.dir, "damaged-*", backup.StoreFile)); len(found) != 1 {
		t.Errorf("the broken file is not aside: %q", found)
	}
}

// TestDamagedLog: P18. If only the log of the store is damaged or missing, the next start goes
// on with all that came before, although there is an older copy; what was there is kept, the
// owner is told, and nothing is answered twice. Before that, doctor says so.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(file string) error
		kept   []string
		aside  string // a file that is kept
	}{
		"record": {spoilLog, []string{"heard one"}, "parley.db.wal/0*"},
		"only the file was copied": {func(file string) error {
			return errors.Join(os.RemoveAll(bolt.LogOf(file)), os.Remove(file+".mark"))
		}, nil, backup.StoreFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestGateway(t, echo)
			w.start()
			w.tg.Say(person, "zero")
			w.says(person, "heard zero")
			w.stop()
			w.copyStore()
			w.start()
			for _, text := range []string{"one", "two", "three"} {
				w.tg.Say(person, text)
				w.says(person, "heard "+text)
			}
			w.kill()
			if err := c.damage(filepath.Join(w.dir, backup.StoreFile)); err != nil {
				t.Fatal(err)
			}
			w.doctorFinds("goes on without these changes")
			w.start()
			w.told(person, "that changes are lost", func(texts []string) bool {
				return strings.Contains(texts[len(texts)-1], "The latest changes of my store were damaged")
			})
			w.tg.Say(person, "four")
			answers := w.told(person, "an answer", func(texts []string) bool { return texts[len(texts)-1] == "heard four" })
			for _, text := range []string{"heard one", "heard two", "heard three"} {
				if n := strings.Count(strings.Join(answers, "\n"), text); n != 1 {
					t.Errorf("%s was said %d times", text, n)
				}
			}
			out := w.exported(fmt.Sprintf("telegram:%d", person))
			for _, text := range append(c.kept, "heard zero", "heard four") {
				if !strings.Contains(out, text) {
					t.Errorf("%s is lost: %s", text, out)
				}
			}
			if found, _ := filepath.Glob(filepath.Join(w.dir, "damaged-*", c.aside)); len(found) != 1 {
				t.Errorf("kept: %q", found)
			}
		})
	}
}

// spoilLog flips a bit of the first record of the log that has an answer to "two".
func spoilLog(file string) error {
	segments, err := filepath.Glob(filepath.Join(bolt.LogOf(file), "0*"))
	if err != nil {
		return err
	}
	for _, path := range segments {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if at := bytes.Index(data, []byte("heard two")); at >= 0 {
			data[at] ^= 1
			return os.WriteFile(path, data, 0o600)
		}
	}
	return errors.New("the log does not have it")
}

// fails runs the gateway, which must end with the exit code that service
// managers do not answer with another start, and say all of texts.
func (w *testGateway) fails(texts ...string) {
	w.t.Helper()
	before := len(w.log.String())
	_, code := w.run("", "run")
	said := w.log.String()[before:]
	for _, text := range texts {
		if code != exitUsage || !strings.Contains(said, text) {
			w.t.Errorf("exit code %d, and not %q:\n%s", code, text, said)
		}
	}
}

// TestLostWorkspaceIsAskedAbout: the agent's memory is not begun anew because a
// disk is not mounted.
func TestLostWorkspaceIsAskedAbout(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	w.tg.Say(person, "one")
	w.says(person, "heard one")
	w.stop()
	folder, away := filepath.Join(w.dir, "workspace"), filepath.Join(w.dir, "away")
	if err := os.Rename(folder, away); err != nil {
		t.Fatal(err)
	}
	w.fails("the workspace "+folder+" is gone or empty", "parley run --data "+w.dir+" --begin-anew")
	w.doctorFinds(folder + " is gone or empty")
	if err := os.Mkdir(folder, 0o700); err != nil { // as a disk that is not mounted leaves it
		t.Fatal(err)
	}
	w.fails("gone or empty")
	if err := errors.Join(os.Remove(folder), os.Rename(away, folder)); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.tg.Say(person, "two")
	w.says(person, "heard two")
	w.stop()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	w.args = []string{"run", "--begin-anew"}
	w.start()
	w.tg.Say(person, "three")
	w.says(person, "heard three")
}

// TestWorkspaceLostInMove: the data folder was moved without the workspace, which
// is nowhere any more. It is asked about as if the folder had stayed.
func TestWorkspaceLostInMove(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	w.tg.Say(person, "one")
	w.says(person, "heard one")
	w.stop()
	moved := filepath.Join(t.TempDir(), "moved")
	if err := errors.Join(os.RemoveAll(filepath.Join(w.dir, "workspace")), os.Rename(w.dir, moved)); err != nil {
		t.Fatal(err)
	}
	w.dir = moved
	w.fails("the workspace "+filepath.Join(moved, "workspace")+" is gone or empty", "--begin-anew")
	if _, err := os.Stat(filepath.Join(moved, "workspace")); err == nil {
		t.Error("it was made, so the next start would not ask")
	}
}

// doctorFinds wants parley doctor to fail and to name what is wrong.
func (w *testGateway) doctorFinds(what string) {
	w.t.Helper()
	if out, code := w.run("", "doctor"); code != exitFailure || !strings.Contains(out, what) {
		w.t.Errorf("doctor: exit code %d, want %q in\n%s", code, what, out)
	}
}
