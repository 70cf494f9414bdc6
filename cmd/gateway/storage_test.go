package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"parley/agent/conversation"
	"parley/backup"
	"parley/channels/discord/discordtest"
	"parley/channels/telegram/telegramtest"
	"parley/store/bolt"
)

// documented is a row of docs/internals/storage.md.
type documented struct {
	names  []*regexp.Regexp
	fields []string // of its values, in JSON
}

// storagePage reads docs/internals/storage.md: the rows of its tables, by the
// title of the section.
func storagePage(t *testing.T) map[string][]documented {
	t.Helper()
	text, err := os.ReadFile("../../docs/internals/storage.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]documented{}
	title := ""
	quoted, placeholder := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`<[^<>]+>`)
	for line := range strings.Lines(string(text)) {
		if heading, found := strings.CutPrefix(line, "## "); found {
			title = strings.TrimSpace(heading)
		}
		first, rest, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !isRow || !strings.HasPrefix(first, "`") {
			continue
		}
		row := documented{}
		for _, m := range quoted.FindAllStringSubmatch(first, -1) {
			row.names = append(row.names, regexp.MustCompile("^"+placeholder.ReplaceAllString(regexp.QuoteMeta(m[1]), ".+")+"$"))
		}
		for _, m := range quoted.FindAllStringSubmatch(rest, -1) {
			row.fields = append(row.fields, m[1])
		}
		rows[title] = append(rows[title], row)
	}
	return rows
}

// lookUp returns the fields that rows document for name, and whether they do.
func lookUp(t testing.TB, rows []documented, what, name string) (fields []string, found bool) {
	t.Helper()
	for _, row := range rows {
		if slices.ContainsFunc(row.names, func(r *regexp.Regexp) bool { return r.MatchString(name) }) {
			fields, found = append(fields, row.fields...), true
		}
	}
	if !found {
		t.Errorf("docs/internals/storage.md does not list the %s %q", what, name)
	}
	return fields, found
}

// checkValue wants the fields of a value, if it is a JSON object, to be documented.
func checkValue(t testing.TB, rows []documented, what, name string, value []byte) {
	t.Helper()
	documented, found := lookUp(t, rows, what, name)
	var fields map[string]json.RawMessage
	if !found || json.Unmarshal(value, &fields) != nil {
		return
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(documented, field) {
			t.Errorf("docs/internals/storage.md does not list the field %q of the %s %q", field, what, name)
		}
	}
}

// TestStorageFields: docs/internals/storage.md lists what records of conversations can have, also what few do.
func TestStorageFields(t *testing.T) {
	fields, _ := lookUp(t, storagePage(t)["Logs"], "log", "session/x")
	for _, field := range reflect.VisibleFields(reflect.TypeFor[conversation.Record]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "unreadable" && !slices.Contains(fields, name) {
			t.Errorf("docs/internals/storage.md does not list the field %q of the session logs", name)
		}
	}
}

// storeNames returns the names of all buckets, logs and queues in the file of a
// store, by kind.
func storeNames(t testing.TB, file string) map[string][]string {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	names := map[string][]string{}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(kind []byte, all *bbolt.Bucket) error {
			return all.ForEach(func(label, _ []byte) error {
				names[string(kind)] = append(names[string(kind)], string(label[1:]))
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestStorageIsDocumented lives through a day with everything in it, and wants
// each bucket, log, queue, field and file that there is in the evening to be in
// docs/internals/storage.md, which also says what is removed when (P28).
func TestStorageIsDocumented(t *testing.T) {
	t.Parallel()
	const unknown = person + 2
	w := newTestGateway(t, obedient)
	w.discord(discordtest.Config{})
	w.channels["telegram"].(map[string]any)["allow"] = []string{itoa(person), itoa(guest)}
	w.start()
	owner := w.visit()
	w.liveADay(owner, unknown)
	if out, code := w.run("", "backup", filepath.Join(w.dir, "archive.tar.gz")); code != 0 {
		t.Fatalf("backup: %d %s", code, out)
	}
	if err := os.Remove(filepath.Join(w.dir, "archive.tar.gz")); err != nil {
		t.Fatal(err)
	}
	page := storagePage(t)
	w.checkFiles(page) // while the gateway runs: its sockets are files, too
	w.stop()
	w.checkFiles(page)
	w.checkStore(page)
}

// liveADay has people do whatever makes the gateway store something.
func (w *testGateway) liveADay(owner *visitor, unknown int64) {
	w.t.Helper()
	w.does(person, `write_file {"path": "notes.txt", "content": "first"}`, `read_file {"path": "notes.txt"}`, `calculator {"expression": "1+1"}`)
	w.does(person, `write_file {"path": "long.txt", "content": "`+strings.Repeat("so long ", 3000)+`"}`)
	w.does(person, `grep {"pattern": "long", "output_mode": "content"}`)
	w.does(guest, `write_file {"path": "theirs.txt", "content": "of a guest"}`)
	w.does(person, `cron {"action": "add", "message": "Stretch!", "every_seconds": 3600}`)
	w.does(person, `spawn {"task": "say hello", "label": "greeter"}`)
	for _, who := range []int64{person, guest} {
		w.tg.Say(who, "/remember I like tea")
		w.told(who, "Noted", func(texts []string) bool { return toldOf(texts, "Noted.") })
		w.tg.Post(who, telegramtest.File{Kind: "document", Name: "a.txt", Type: "text/plain", Data: []byte("x")}, "keep it")
		w.told(who, "an answer", func(texts []string) bool { return toldOf(texts, "keep it") })
	}
	w.tg.Say(person, "/groups off weather")
	w.told(person, "that they are off", func(texts []string) bool { return toldOf(texts, "without the tools of weather") })
	w.tg.Say(person, "/new")
	w.told(person, "a new conversation", func(texts []string) bool { return len(texts) > 0 })
	w.tg.Say(person, `call ask_user {"question": "Which one?", "choices": ["A", "B"]}`)
	question := w.asks(person, "Which one?")
	w.tg.PressData(person, question.ID, question.Buttons[0][0].Data, telegramtest.As(person, "Ada"))
	w.told(person, "the choice", func(texts []string) bool { return strings.HasPrefix(texts[len(texts)-1], "the tools say: ") })

	w.tg.Say(unknown, "let me in")
	w.told(unknown, "a code", func(texts []string) bool { return len(texts) == 1 })
	w.tg.Say(person, "/pair "+pairingCode.FindString(botTexts(w.tg.Chat(unknown))[0]))
	w.told(unknown, "a welcome", func(texts []string) bool { return len(texts) == 2 })

	w.online()
	w.discordSpot().asks("hello", "heard hello")
	w.invite("ann")
	conversation := owner.conversation()
	owner.say(conversation, "message-1", "hello")
	owner.reads(conversation, "the answer", func(ls []line) bool { return ls[len(ls)-1].Who == "parley" })
	if status, answer := w.askAPI(w.base(), w.key("owner"), "again-1", `{"model": "main", "messages": [{"role": "user", "content": "hello"}]}`); status != http.StatusOK {
		w.t.Fatalf("the API answers %d %s", status, answer)
	}
	policy := map[string]any{"target_type": "role", "target_value": "user", "config": map[string]any{
		"category_overrides": map[string]any{"net": map[string]any{"label": "Net", "tools": []string{"x"}, "default_enabled": true, "silent_when_disabled": true}},
		"remove_categories":  []string{"x"}, "forced_category_states": map[string]any{"x": false},
		"disabled_models": []string{"x"}, "ui_blocks": map[string]any{"block_steps": false},
	}}
	if status, body := owner.do("POST", "/api/admin/policy", policy); status != http.StatusOK {
		w.t.Fatalf("policy: %d %s", status, body)
	}
	w.tg.Push(`"message": 7`)
	w.tg.Say(person, "good night")
	w.says(person, "heard good night")
}

var pairingCode = regexp.MustCompile(`[A-Z2-7]{8}`)

// checkFiles wants each file of the data folder and the workspace to be documented.
func (w *testGateway) checkFiles(page map[string][]documented) {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, _ := filepath.Rel(w.dir, path)
		name, inWorkspace := strings.CutPrefix(name, "workspace/")
		switch {
		case err != nil || d.IsDir():
			return err
		case !inWorkspace:
			lookUp(w.t, page["Files of the data folder"], "file", name)
		case name != "notes.txt" && name != "long.txt": // which are the agent's
			text, err := os.ReadFile(path)
			if !strings.HasPrefix(name, ".parley/undo/") || !strings.HasSuffix(name, ".json") || err != nil {
				text = nil
			}
			checkValue(w.t, page["Files of the workspace"], "file", name, text)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// checkStore wants each bucket, log and queue of the store to be documented,
// with all fields of what is in it.
func (w *testGateway) checkStore(page map[string][]documented) {
	w.t.Helper()
	ctx, names := w.t.Context(), storeNames(w.t, filepath.Join(w.dir, backup.StoreFile))
	s, err := bolt.Open(ctx, bolt.Config{Dir: w.dir})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	for _, name := range names["bucket"] {
		for key, err := range s.Bucket(name).Keys(ctx, "") {
			if err != nil {
				w.t.Fatal(err)
			}
			value, _, err := s.Bucket(name).Get(ctx, key)
			if err != nil {
				w.t.Fatal(err)
			}
			if strings.HasPrefix(name, "memory texts") || strings.HasPrefix(name, "alias/") {
				value = nil
			}
			checkValue(w.t, page["Buckets"], "bucket", name, value)
		}
	}
	for _, name := range names["log"] {
		for r, err := range s.Log(name).Since(ctx, 0) {
			if err != nil {
				w.t.Fatal(err)
			}
			body := r.Body
			if strings.HasPrefix(name, "dead/") { // what somebody else wrote
				body = nil
			}
			checkValue(w.t, page["Logs"], "log", name, body)
		}
	}
	for _, name := range names["queue"] {
		lookUp(w.t, page["Queues"], "queue", name)
	}
	for kind := range names {
		if !strings.HasPrefix(kind, "log+") && !slices.Contains([]string{"bucket", "log", "queue", "seen", "damaged", "store"}, kind) {
			w.t.Errorf("docs/internals/storage.md does not list the top bucket %q", kind)
		}
	}
	if len(names["bucket"]) < 20 || len(names["log"]) < 5 || len(names["queue"]) < 4 {
		w.t.Errorf("it was a quiet day: there are only %v", names)
	}
}
