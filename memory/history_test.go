package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"parley/chat"
	"parley/workspace"
)

const (
	anna  chat.Person = "telegram:7"
	bert  chat.Person = "telegram:8"
	group chat.Person = "telegram:-100"
)

// A diary is a history in a workspace of its own.
type diary struct {
	*History
	t   testing.TB
	w   *workspace.Workspace
	log *bytes.Buffer
}

func newDiary(t testing.TB) diary {
	t.Helper()
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	log := &bytes.Buffer{}
	return diary{NewHistory(w, slog.New(slog.NewTextHandler(log, nil))), t, w, log}
}

// add appends a text under a key.
func (p diary) add(who chat.Person, key, text string) Entry {
	p.t.Helper()
	e, err := p.Append(p.t.Context(), who, Entry{Key: key, Text: text, Session: "telegram:7", Time: time.Unix(1_800_000_000, 0).UTC()})
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

// since returns the texts after cursor, each with its own.
func (p diary) since(who chat.Person, cursor int64) string {
	p.t.Helper()
	var all []string
	for e, err := range p.Since(p.t.Context(), who, cursor) {
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d %s", e.Cursor, e.Text))
	}
	return strings.Join(all, ", ")
}

func (p diary) file(who chat.Person) string {
	p.t.Helper()
	data, err := p.w.Names().ReadFile(fileOf(who, historyName))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

func (p diary) write(name, text string) {
	p.t.Helper()
	if err := p.w.Names().WriteFile(name, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

func TestHistory(t *testing.T) {
	p := newDiary(t)
	if got, err := p.People(t.Context()); len(got) > 0 || err != nil {
		t.Errorf("at first there are %q, %v", got, err)
	}
	if got := p.since(anna, 0); got != "" {
		t.Errorf("at first there is %s", got)
	}
	first := Entry{Key: "a", Text: "one <&> \u2028\x00\xff", Session: "telegram:7/2", Time: time.Unix(1_800_000_000, 0).UTC(), Raw: true, Tainted: true, Sources: []string{"a page"}, Cursor: 99, Who: bert}
	got, err := p.Append(t.Context(), anna, first)
	first.Cursor, first.Who, first.Text = 1, anna, "one <&> \u2028\x00\uFFFD"
	if !reflect.DeepEqual(got, first) || err != nil {
		t.Errorf("Append = %+v, %v; want %+v", got, err, first)
	}
	for e, err := range p.Since(t.Context(), anna, 0) {
		if !reflect.DeepEqual(e, first) || err != nil {
			t.Errorf("Since = %+v, %v; want %+v", e, err, first)
		}
	}
	p.add(anna, "b", "two\nlines")
	p.add(anna, "", "three")
	p.add(anna, "", "three")
	p.add(chat.TheOwner, "a", "mine")
	p.add(group, "a", "ours")
	if got := p.add(anna, "b", "again"); got.Cursor != 2 || got.Text != "two\nlines" { // exactly once
		t.Errorf("the same again = %+v", got)
	}
	for cursor, want := range []string{"1 " + first.Text + ", 2 two\nlines, 3 three, 4 three", "2 two\nlines, 3 three, 4 three", "3 three, 4 three", "4 three", ""} {
		if got := p.since(anna, int64(cursor)); got != want {
			t.Errorf("since %d: %q, want %q", cursor, got, want)
		}
	}
	people, err := p.People(t.Context())
	slices.Sort(people)
	if fmt.Sprint(people) != "[owner telegram:-100 telegram:7]" || err != nil {
		t.Errorf("People = %q, %v", people, err)
	}
	for _, who := range people {
		if n := strings.Count(p.file(who), "\n"); n != map[chat.Person]int{anna: 4}[who]+map[chat.Person]int{group: 1, chat.TheOwner: 1}[who] {
			t.Errorf("%s has %d lines", who, n)
		}
	}
	for e, err := range p.Since(t.Context(), anna, 0) {
		if e.Cursor != 1 || err != nil {
			t.Errorf("the first is %+v, %v", e, err)
		}
		break
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for e, err := range p.Since(ended, anna, 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %+v, %v", e, err)
		}
	}
	if _, err := p.Append(ended, anna, Entry{Text: "late"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Append after the end: %v", err)
	}
}

// An entry has a limit, and fills a line that can be read.
func TestHistoryLimits(t *testing.T) {
	p := newDiary(t)
	for i, text := range []string{strings.Repeat("x", maxText), strings.Repeat("\x01", maxText+1), strings.Repeat("\U0001F600", maxText+1)} {
		e := p.add(anna, "", text)
		if n := utf8.RuneCountInString(e.Text); n != maxText {
			t.Errorf("%d characters are kept", n)
		}
		if got := p.since(anna, int64(i)); got != fmt.Sprintf("%d %s", i+1, e.Text) {
			t.Errorf("%d: other text is read: %.100q", i, got)
		}
	}
	if _, err := p.Append(t.Context(), anna, Entry{Text: "no", Time: time.Unix(1<<40, 0)}); err == nil {
		t.Error("a time that JSON has no form for was taken")
	}
	if got := p.since(anna, 3); got != "" {
		t.Errorf("and left %q", got)
	}
}

// However much of the last write a crash has left on the disk, what was there
// before is there, and what is appended again is there once.
func TestHistoryCrash(t *testing.T) {
	p := newDiary(t)
	p.add(anna, "a", "one")
	before := p.file(anna)
	p.add(anna, "b", "two")
	whole := p.file(anna)
	for size := len(before); size <= len(whole); size++ {
		for what, torn := range map[string]string{"cut": whole[:size], "hole": whole[:size] + strings.Repeat("\x00", len(whole)-size)} {
			p.write(fileOf(anna, historyName), torn)
			if got := p.since(anna, 1); got != "" && got != "2 two" {
				t.Fatalf("%s at %d: %q", what, size, got)
			}
			for range 2 { // the first may go the same way
				p.add(anna, "b", "two")
			}
			p.add(anna, "c", "three")
			if got := p.since(anna, 0); got != "1 one, 2 two, 3 three" {
				t.Fatalf("%s at %d, and then: %q", what, size, got)
			}
		}
	}
	p.write(fileOf(anna, historyName), "") // made, and nothing written
	p.add(anna, "a", "one")
	if got := p.since(anna, 0); got != "1 one" {
		t.Errorf("in an empty file: %q", got)
	}
}

// P21: a damaged line affects only itself. It stays, and is told once.
func TestHistoryDamage(t *testing.T) {
	p := newDiary(t)
	line := func(cursor, who, text string) string {
		return fmt.Sprintf(`{"cursor":%s,"who":%q,"key":%q,"text":%q}`+"\n", cursor, who, "k"+cursor, text)
	}
	var text string
	for _, damage := range []string{
		"{", "null\n", "[]\n", "nonsense\n", "\n", "\x00\x00\x00\n", `{"cursor":1}` + "\n", line("0", "telegram:7", "x"), line("-1", "telegram:7", "x"), line("1.5", "telegram:7", "x"),
		line(`"3"`, "telegram:7", "x"), line("null", "telegram:7", "x"), line("9007199254740992", "telegram:7", "x"), line("1e99", "telegram:7", "x"),
		line("70", "telegram:8", "another's"), strings.Repeat("y", maxLine-1) + "\n", strings.Repeat("y", maxLine) + "\n", strings.Repeat("y", 3*maxLine+5) + "\n",
		line("20", "telegram:7", "ok"), `{"cursor":21`,
	} {
		text += damage
	}
	p.write(fileOf(anna, historyName), text)
	if got := p.since(anna, 0); got != "20 ok" {
		t.Errorf("got %.200q", got)
	}
	if e := p.add(anna, "new", "more"); e.Cursor != 21 {
		t.Errorf("the next cursor is %d", e.Cursor)
	}
	if n, err := p.Forget(t.Context(), anna, func(e Entry) bool { return e.Text == "more" }); n != 1 || err != nil {
		t.Errorf("Forget = %d, %v", n, err)
	}
	before, _, _ := strings.Cut(text, `{"cursor":20`)
	if got := p.file(anna); !strings.HasPrefix(got, before) || !strings.Contains(got, "\n{\"cursor\":21\n") || strings.Contains(got, "ok") {
		t.Errorf("damaged lines are gone: %.300q … %.300q", got, got[len(got)-300:])
	}
	if got := p.since(anna, 0); got != "21 more" {
		t.Errorf("then %.200q", got)
	}
	if n := strings.Count(p.log.String(), "damaged lines"); n != 1 {
		t.Errorf("it was told %d times: %s", n, p.log)
	}
}

// A forged cursor, however high, is no reason to keep nothing any more: the line
// counts as none, and the entries after it go on from the last that does.
func TestForgedCursor(t *testing.T) {
	for _, forged := range []int64{maxGap + 2, 1<<53 - 1, 1 << 53, math.MaxInt64} {
		p := newDiary(t)
		p.add(anna, "a", "one")
		p.write(fileOf(anna, historyName), p.file(anna)+fmt.Sprintf(`{"cursor":%d,"who":"telegram:7","text":"forged"}`+"\n", forged))
		for range 2 {
			if e, err := p.Append(t.Context(), anna, Entry{Key: "b", Text: "two"}); e.Cursor != 2 || err != nil {
				t.Errorf("after %d: kept as %d, %v", forged, e.Cursor, err)
			}
		}
		if got := p.since(anna, 0); got != "1 one, 2 two" {
			t.Errorf("after %d there is %q", forged, got)
		}
		if hits, err := p.Search(t.Context(), anna, "two", 5); len(hits) != 1 || err != nil {
			t.Errorf("after %d: found %v, %v", forged, hits, err)
		}
	}
}

// What is forgotten is gone from the file. Its cursor and its key do not come
// again: who has read up to there misses nothing, and no crash brings it back.
func TestForget(t *testing.T) {
	p := newDiary(t)
	if n, err := p.Forget(t.Context(), anna, nil); n != 0 || err != nil {
		t.Errorf("Forget of nothing = %d, %v", n, err)
	}
	for i, text := range []string{"one", "secret two", "three", "secret four"} {
		p.add(anna, fmt.Sprint("k", i), text)
	}
	p.add(bert, "k", "a secret, too")
	p.found(anna, "secret", 1)
	for _, want := range []int{2, 0} {
		n, err := p.Forget(t.Context(), anna, func(e Entry) bool { return !strings.Contains(e.Text, "secret") })
		if n != want || err != nil {
			t.Errorf("Forget = %d, %v; want %d", n, err, want)
		}
	}
	if p.indexes[anna] != nil || p.indexes[bert] == nil {
		t.Error("the index remembers what is forgotten")
	}
	if got := p.since(anna, 0); got != "1 one, 3 three" || strings.Contains(p.file(anna), "secret") {
		t.Errorf("then there is %q in %s", got, p.file(anna))
	}
	p.add(anna, "k3", "secret four")
	p.add(anna, "k9", "five")
	if got := p.since(anna, 0); got != "1 one, 3 three, 5 five" {
		t.Errorf("then there is %q", got)
	}
	if got := p.since(bert, 0); got != "1 a secret, too" {
		t.Errorf("another's is %q", got)
	}
	if hits, err := p.Search(t.Context(), anna, "secret", 9); len(hits) > 0 || err != nil {
		t.Errorf("found %v, %v", hits, err)
	}
}

// Several append, read, search and forget at once.
func TestHistoryAtOnce(t *testing.T) {
	p := newDiary(t)
	people := []chat.Person{chat.TheOwner, anna, bert}
	var wg sync.WaitGroup
	for i := range 6 {
		who := people[i%len(people)]
		wg.Go(func() {
			for n := range 15 {
				p.add(who, fmt.Sprint("key ", n), "some words")
				p.since(who, 0)
				if hits, err := p.Search(t.Context(), who, "words", 20); err != nil || len(hits) < n+1 {
					t.Errorf("%d hits after %d, %v", len(hits), n+1, err)
				}
			}
		})
		wg.Go(func() {
			for range 5 {
				if n, err := p.Forget(t.Context(), who, func(Entry) bool { return true }); n != 0 || err != nil {
					t.Errorf("Forget = %d, %v", n, err)
				}
				if _, err := p.People(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, who := range people {
		next := int64(1)
		for e, err := range p.Since(t.Context(), who, 0) {
			if e.Cursor != next || err != nil {
				t.Fatalf("%s: cursor %d, %v; want %d", who, e.Cursor, err, next)
			}
			next++
		}
		if next != 16 {
			t.Errorf("%s has %d entries", who, next-1)
		}
	}
	if p.log.Len() > 0 {
		t.Errorf("logged: %s", p.log)
	}
}

// What cannot be written leaves nothing behind; what cannot be read is told.
func TestHistoryFails(t *testing.T) {
	p := newDiary(t)
	if err := os.MkdirAll(filepath.Join(p.w.Dir(), fileOf(anna, historyName)), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Append(t.Context(), anna, Entry{Text: "x"}); err == nil || !strings.HasPrefix(err.Error(), "append to the history: ") {
		t.Errorf("Append: %v", err)
	}
	if _, err := p.Forget(t.Context(), anna, nil); err == nil || !strings.HasPrefix(err.Error(), "forget entries of the history: ") {
		t.Errorf("Forget: %v", err)
	}
	if _, err := p.Search(t.Context(), anna, "x", 1); err == nil || !strings.HasPrefix(err.Error(), "search memory: ") {
		t.Errorf("Search: %v", err)
	}
	n := 0
	for _, err := range p.Since(t.Context(), anna, 0) {
		if n++; err == nil || !strings.HasPrefix(err.Error(), "read history: ") {
			t.Errorf("Since: %v", err)
		}
	}
	if people, err := p.People(t.Context()); n != 1 || len(people) != 0 || err != nil {
		t.Errorf("%d errors; People = %v, %v", n, people, err)
	}
}

// Whatever is in the file: nothing fails, what is valid is found, its bytes
// stay, and what is added is there once (P21).
func FuzzHistory(f *testing.F) {
	f.Add([]byte(`{"cursor":1,"who":"owner","key":"a","text":"one"}` + "\n" + `{"cursor":2,"who":"owner","text":"tw`))
	f.Add([]byte("\n\n\r\n{}\n\x00\xff\n[1]\n"))
	f.Add([]byte(`{"cursor":9007199254740991,"who":"owner","text":"last"}`))
	f.Add([]byte(`{"CURSOR":3,"Who":"owner","text":null,"time":"2026-11-21T16:00:00Z"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := newDiary(t)
		p.write(fileOf(chat.TheOwner, historyName), string(data))
		highest := int64(0)
		for line := range bytes.SplitSeq(data, []byte{'\n'}) {
			var e Entry
			if json.Unmarshal(line, &e) == nil && e.Who == chat.TheOwner && e.Cursor > highest && e.Cursor <= highest+maxGap {
				highest = e.Cursor
			}
		}
		if bytes.Contains(data, []byte("fresh")) {
			return
		}
		before := strings.Count(p.since(chat.TheOwner, 0), "")
		p.add(chat.TheOwner, "fresh", "fresh")
		e := p.add(chat.TheOwner, "fresh", "fresh")
		if e.Cursor != highest+1 || !strings.HasPrefix(p.file(chat.TheOwner), string(data)) {
			t.Errorf("after %q: %+v, want the cursor %d", data, e, highest+1)
		}
		if got := p.since(chat.TheOwner, 0); !strings.HasSuffix(got, fmt.Sprintf("%d fresh", highest+1)) || strings.Count(got, "") <= before {
			t.Errorf("after %q: %q", data, got)
		}
		if hits, err := p.Search(t.Context(), chat.TheOwner, "fresh", 5); len(hits) != 1 || err != nil {
			t.Errorf("after %q: found %v, %v", data, hits, err)
		}
	})
}
