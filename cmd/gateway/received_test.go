package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/store"
	"parley/store/bolt"
)

// TestUsedFilesAreNoted: P28. A file that somebody sent is known, and when a call named it
// last, so that retention.files counts from then.
func TestUsedFilesAreNoted(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.start()
	w.tg.Post(person, telegramtest.File{Kind: "document", Name: "a.txt", Type: "text/plain", Data: []byte("sent")}, "keep it")
	w.told(person, "an answer", func(texts []string) bool { return toldOf(texts, "keep it") })
	w.stop()
	name, known := w.receivedFile(nil)
	if got, _ := known["size"].(float64); got != 4 || known["used"] != nil || filepath.Dir(filepath.Dir(name)) != "inbox" {
		t.Fatalf("of %q is known %v", name, known)
	}
	w.receivedFile(func(known map[string]any) { known["time"] = time.Now().AddDate(-1, 0, 0) })
	w.start()
	if said := w.does(person, `read_file {"path": "`+name+`"}`); !strings.Contains(said, "sent") {
		t.Errorf("the file is read as %q", said)
	}
	w.stop()
	if _, known := w.receivedFile(nil); known["used"] == nil {
		t.Errorf("after its use is known %v", known)
	}
}

// receivedFile returns the path of the only file that somebody sent, and what is known of
// it, after change, which may be nil, was called with that. The gateway does not run.
func (w *testGateway) receivedFile(change func(known map[string]any)) (name string, known map[string]any) {
	w.t.Helper()
	s, err := bolt.Open(w.t.Context(), bolt.Config{Dir: w.dir})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	b := s.Bucket(store.BucketReceived)
	for key, err := range b.Keys(w.t.Context(), "") {
		if err != nil || name != "" {
			w.t.Fatalf("%s and %s are known, %v", name, key, err)
		}
		name = key
	}
	if err := w.changeValue(w.t.Context(), b, name, &known, change); err != nil {
		w.t.Fatal(err)
	}
	return name, known
}

// changeValue decodes the value of key in b, and encodes it after change, unless that is nil.
func (*testGateway) changeValue(
	ctx context.Context, b store.Bucket, key string, v *map[string]any, change func(map[string]any),
) error {
	body, rev, err := b.Get(ctx, key)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil || change == nil {
		return err
	}
	change(*v)
	if body, err = json.Marshal(*v); err != nil {
		return err
	}
	_, err = b.Put(ctx, key, body, rev)
	return err
}
