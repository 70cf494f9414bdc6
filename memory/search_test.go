package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/chat"
	"parley/llm"
	"parley/search"
)

func FuzzWords(f *testing.F) {
	f.Add("a word of immoderate length", "immoderate")
	f.Add("One 黑猫 e\u0301 \xff ไทย", "猫 one")
	f.Fuzz(func(t *testing.T, text, query string) {
		at := 0
		for start, end := range search.Words(text) {
			if start >= end || end > len(text) || end < at || len(search.Terms(text[start:end])) != 1 {
				t.Fatalf("%q: %q after %d", text, text[start:end], at)
			}
			at = end
		}
		text = strings.ToValidUTF8(text, "?")
		for _, most := range []int{8, 30, 100} {
			got := excerpt(text, search.Terms(query), most)
			if utf8.RuneCountInString(got) > most+1 || !utf8.ValidString(got) || !strings.Contains(text, strings.TrimSuffix(strings.TrimPrefix(got, "…"), "…")) {
				t.Fatalf("%q in %q: %q", query, text, got)
			}
		}
	})
}

// found returns what a search finds, as one line.
func (p diary) found(who chat.Person, words string, most int) string {
	p.t.Helper()
	hits, err := p.Search(p.t.Context(), who, words, most)
	if err != nil {
		p.t.Fatal(err)
	}
	var all []string
	for _, h := range hits {
		if h.Time.IsZero() || h.Source == "history" != (h.Session != "") {
			p.t.Errorf("an odd hit: %+v", h)
		}
		text := h.Text
		if h.Source != "history" {
			text = h.Source + ": " + text
		}
		if h.Tainted {
			text += " (tainted)"
		}
		all = append(all, text)
	}
	return strings.Join(all, " | ")
}

// A search finds what has the words: more of them, rarer ones and in fewer
// others first.
func TestSearch(t *testing.T) {
	p := newDiary(t)
	for i, text := range []string{
		"Anna likes tea", "Anna has a cat called Mia", "The cat sleeps", "Weather: rain, rain, rain", "It may rain for a while before anybody goes to the park again on a day that nobody can name",
		"私は猫が好きです", "Das Café in der Straße",
	} {
		p.add(chat.TheOwner, fmt.Sprint(i), text)
	}
	for _, c := range []struct{ words, want string }{
		{"tea", "Anna likes tea"},
		{"ANNA cat", "Anna has a cat called Mia | The cat sleeps | Anna likes tea"},
		{"cat, cat; cat?", "The cat sleeps | Anna has a cat called Mia"},
		{"rain", "Weather: rain, rain, rain | It may rain for a while before anybody goes to the park again on a day that nobody can name"},
		{"anna mia", "Anna has a cat called Mia | Anna likes tea"},
		{"猫", "私は猫が好きです"}, {"猫が", "私は猫が好きです"}, {"猫は", ""},
		{"CAFÉ strasse", "Das Café in der Straße"},
		{"dog", ""}, {"", ""}, {"?!", ""},
	} {
		if got := p.found(chat.TheOwner, c.words, 5); got != c.want {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
	if got := p.found(chat.TheOwner, "anna", 1); got != "Anna likes tea" {
		t.Errorf("the best of two: %q", got)
	}
	if got := p.found(chat.TheOwner, "anna", 0); got != "" {
		t.Errorf("none of two: %q", got)
	}
}

// Of those as good, the newest come first, also when not all are asked for.
func TestSearchTies(t *testing.T) {
	p := newDiary(t)
	for i := range 9 {
		if _, err := p.Append(t.Context(), anna, Entry{Text: fmt.Sprint("tie ", i), Session: "s", Time: time.Unix(int64(1000+i), 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.found(anna, "tie", 3); got != "tie 8 | tie 7 | tie 6" {
		t.Errorf("got %q", got)
	}
}

// Files are searched as they are, by paragraph and item, and what was heard
// from others in them is told as such (R-S14).
func TestSearchFiles(t *testing.T) {
	p := newDiary(t)
	p.add(anna, "a", "she asked for green tea")
	folder := anna.Folder()
	p.write(path.Join(folder, "MEMORY.md"), "# Known\n\n- likes green tea\n  very much\n- has a bike\n")
	p.write(path.Join(folder, "HEARD.md"), "tea is said to be bad\nbikes, too\n")
	p.write(path.Join(folder, "USER.md"), "A caf\xe9 owner.\n\n\nWants tea at five.\n")
	p.write(path.Join(folder, "SOUL.md"), "tea")
	for _, c := range []struct{ words, want string }{
		{"green tea", "she asked for green tea | MEMORY.md: - likes green tea\n  very much | USER.md: Wants tea at five. | HEARD.md: tea is said to be bad\nbikes, too (tainted)"},
		{"bike", "MEMORY.md: - has a bike"},
		{"owner", "USER.md: A caf\uFFFD owner."},
	} {
		if got := p.found(anna, c.words, 5); got != c.want {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
	p.write(path.Join(folder, "MEMORY.md"), "- likes coffee")
	if got := p.found(anna, "coffee bike", 5); got != "MEMORY.md: - likes coffee" {
		t.Errorf("after an edit: %q", got)
	}
	p.write("SOUL.md", "You love puns.")
	p.write("memory/HEARD.md", "Puns are bad.")
	if got := p.found(chat.TheOwner, "puns", 5); got != "SOUL.md: You love puns. | HEARD.md: Puns are bad. (tainted)" {
		t.Errorf("the owner's: %q", got)
	}
	p.add(anna, "b", "odd\rends\u2028of\vlines") // so that each can be quoted
	if got := p.found(anna, "odd", 5); got != "odd\nends\nof\nlines" {
		t.Errorf("got %q", got)
	}
	if got := paragraphs(strings.Repeat("many words ", 20) + "\n" + strings.Repeat(strings.Repeat("x", 70)+"\n", 1000)); len(got) < 30 {
		t.Errorf("a long paragraph is in %d parts", len(got))
	}
}

// An index follows its file: what is appended, what is forgotten, and what
// somebody else writes there.
func TestSearchFollows(t *testing.T) {
	p := newDiary(t)
	want := func(words, want string) {
		t.Helper()
		if got := p.found(anna, words, 9); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	want("word", "")
	p.add(anna, "1", "word one")
	want("word", "word one")
	p.add(anna, "2", "word two")
	p.add(anna, "3", "word three")
	shelf := p.indexes[anna]
	want("word", "word three | word two | word one")
	if p.add(anna, "3", "again"); p.indexes[anna] != shelf {
		t.Error("what is known was read again")
	}
	whole := p.file(anna)
	p.write(fileOf(anna, historyName), whole[:len(whole)-9]) // torn
	want("word", "word two | word one")
	p.add(anna, "3", "word three")
	want("word", "word three | word two | word one")
	if _, err := p.Forget(t.Context(), anna, func(e Entry) bool { return e.Cursor != 2 }); err != nil {
		t.Fatal(err)
	}
	p.add(anna, "4", "word four")
	want("word", "word four | word three | word one")

	name := filepath.Join(p.w.Dir(), fileOf(anna, historyName)) // an editor that writes in place
	text := p.file(anna)
	if err := os.WriteFile(name, []byte(strings.Repeat("\n", 500)+text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.found(anna, "word", 9)
	want("word", "word four | word three | word one")
	if err := os.WriteFile(name, []byte(text[:len(text)/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	want("word", "word one")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	want("word", "")
	p.write(fileOf(anna, historyName), text)
	want("word", "word four | word three | word one")
}

// A search that is given up leaves no entry out and none twice.
func TestSearchGivenUp(t *testing.T) {
	p := newDiary(t)
	p.add(anna, "1", "word one")
	if got := p.found(anna, "word", 9); got != "word one" {
		t.Errorf("got %q", got)
	}
	for i := range 200 {
		p.add(anna, "", fmt.Sprint("word ", i))
	}
	p.write(fileOf(anna, historyName), p.file(anna)) // to be read again
	ctx := &brittle{Context: t.Context(), left: 100}
	if _, err := p.Search(ctx, anna, "word", 9); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if n := strings.Count(p.found(anna, "word", 999), "word"); n != 201 {
		t.Errorf("then %d are found", n)
	}
}

// A brittle context ends after it was asked some times.
type brittle struct {
	context.Context
	left int
}

func (b *brittle) Err() error {
	if b.left--; b.left < 0 {
		return context.Canceled
	}
	return nil
}

// A hit shows the part of a long entry where most of the words are.
func TestExcerpt(t *testing.T) {
	p := newDiary(t)
	filler := strings.Repeat("nothing of interest was said about it; ", 100)
	p.add(anna, "1", "The cat. "+filler+"Anna gave the cat a fish on Monday. "+filler)
	got := p.found(anna, "cat fish anna", 1)
	if utf8.RuneCountInString(got) > maxHit+1 || !strings.Contains(got, "Anna gave the cat a fish on Monday.") || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q", got)
	}
	p.add(anna, "2", strings.Repeat("这里没有什么", 300)+"黑猫"+strings.Repeat("在那里睡觉", 300))
	if got := p.found(anna, "黑猫", 1); !strings.Contains(got, "黑猫") || !utf8.ValidString(got) || utf8.RuneCountInString(got) > maxHit+1 {
		t.Errorf("got %q", got)
	}
	p.add(anna, "3", filler+"zebra")
	if got := p.found(anna, "zebra", 1); !strings.HasSuffix(got, "zebra") {
		t.Errorf("at the end: %q", got)
	}
}

// What is held in memory has a bound, and is read again when it is asked for.
func TestHeld(t *testing.T) {
	p := newDiary(t)
	for i := range 9 {
		who := chat.Person(fmt.Sprint("x:", i))
		p.add(who, "k", "word")
		p.indexes[who].at = make([]span, maxHeld/3)
	}
	held := 0
	for i := range 9 {
		who := chat.Person(fmt.Sprint("x:", i))
		if s := p.indexes[who]; s != nil && len(s.at) > 1 {
			held++
			delete(p.indexes, who)
		}
		if got := p.found(who, "word", 9); got != "word" {
			t.Errorf("%s finds %q", who, got)
		}
	}
	if held > 4 { // the last one was not counted yet
		t.Errorf("%d histories are held", held)
	}
}

// R-S14: what is known of one never reaches another, by search, history,
// instructions, or files that are not what they seem.
func TestOnlyTheirs(t *testing.T) {
	const secret = "zanzibar"
	people := []chat.Person{chat.TheOwner, anna, bert, group, "telegram:-100/7", "discord:7"}
	for _, a := range people {
		p := newDiary(t)
		p.add(a, "a", secret)
		p.write(path.Join(a.Folder(), "MEMORY.md"), "- "+secret+"\n")
		p.write(path.Join(a.Folder(), "USER.md"), secret+"\n")
		if got := p.found(a, secret, 9); strings.Count(got, secret) != 3 {
			t.Errorf("%s finds of their own %q", a, got)
		}
		prompt := func(who chat.Person) string {
			s, err := Prompt{Files: p.w.Names(), Zone: time.UTC}.System(t.Context(), "telegram:7", who, llm.Room{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if n := strings.Count(prompt(a), secret); n != 2 {
			t.Errorf("%s is told %d times of their own", a, n)
		}
		for _, b := range people {
			if a == b {
				continue
			}
			reach := func(how string) {
				t.Helper()
				if got := p.found(b, secret, 9) + p.since(b, 0); got != "" {
					t.Errorf("%s reaches what is %s's by %s: %q", b, a, how, got)
				}
			}
			reach("asking")
			if strings.Contains(prompt(b), secret) {
				t.Errorf("%s's instructions have what is %s's", b, a)
			}
			subagent, err := Prompt{Files: p.w.Names(), Zone: time.UTC}.SubagentSystem(t.Context(), b, "do it", llm.Room{})
			if err != nil || strings.Contains(subagent, secret) {
				t.Errorf("%s's helper is told %q, %v", b, subagent, err)
			}
			p.write(fileOf(b, historyName), p.file(a)) // a file in the wrong place
			reach("a copy")
			if people, _ := p.People(t.Context()); slices.Contains(people, b) {
				t.Errorf("%s has a history that is %s's", b, a)
			}
			for _, name := range []string{fileOf(b, historyName), path.Join(b.Folder(), "MEMORY.md")} {
				from := fileOf(a, historyName)
				if path.Base(name) == "MEMORY.md" {
					from = path.Join(a.Folder(), "MEMORY.md")
				}
				link := filepath.Join(p.w.Dir(), name)
				_ = os.Remove(link)
				_ = os.MkdirAll(filepath.Dir(link), 0o700)
				if err := os.Symlink(filepath.Join(p.w.Dir(), from), link); err != nil {
					t.Fatal(err)
				}
			}
			reach("a link")
			if err := os.Remove(filepath.Join(p.w.Dir(), b.Folder(), "MEMORY.md")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// While a long history is read for the first time, nobody else waits, and what
// is added to it meanwhile is found.
func TestOthersGoOnWhileOneIsRead(t *testing.T) {
	p := newDiary(t)
	p.add(anna, "1", "word one")
	p.write(fileOf(anna, historyName), p.file(anna)+"damaged\n")
	other := diary{NewHistory(p.w, slog.New(slog.DiscardHandler)), t, p.w, p.log}
	p.History = NewHistory(p.w, slog.New(slog.NewTextHandler(during(func() { // it is being read
		p.add(bert, "1", "word of another")
		other.add(anna, "2", "word two")
	}), nil)))
	if got := p.found(anna, "word", 9); got != "word two | word one" {
		t.Errorf("found %q", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p.write(fileOf(anna, historyName), "")
	if _, err := p.Search(ended, anna, "word", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a search that is over: %v", err)
	}
}

// A during is done whenever something is written.
type during func()

func (d during) Write(b []byte) (int, error) { d(); return len(b), nil }

// fill writes a history of n entries, of some 60 words each, of a language of
// 50,000 words.
func fill(b *testing.B, p diary, n int) {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 4, 50_000)
	var text strings.Builder
	for i := range n {
		var words []string
		for range 40 + rng.IntN(40) {
			words = append(words, fmt.Sprintf("word%d", zipf.Uint64()))
		}
		line, err := encode(Entry{Cursor: int64(i + 1), Who: chat.TheOwner, Key: fmt.Sprint(i), Session: "telegram:42", Time: time.Unix(int64(i)*3600, 0), Text: strings.Join(words, " ")})
		if err != nil {
			b.Fatal(err)
		}
		text.Write(line)
	}
	p.t = b
	p.write(fileOf(chat.TheOwner, historyName), text.String())
}

// BenchmarkSearch100k searches 100,000 entries, of an index that is there.
func BenchmarkSearch100k(b *testing.B) {
	p := newDiary(b)
	fill(b, p, 100_000)
	before := heap()
	start := time.Now()
	p.found(chat.TheOwner, "word1", 1)
	took := time.Since(start)
	size := heap() - before
	runtime.KeepAlive(p)
	for b.Loop() {
		if got := p.found(chat.TheOwner, "what was word0 of word3 and word700 with word20000", 8); strings.Count(got, " | ") != 7 {
			b.Fatal(got)
		}
	}
	b.ReportMetric(float64(took.Milliseconds()), "ms/build")
	b.ReportMetric(float64(size)/(1<<20), "MiB-held")
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkAppend100k adds to a history of 100,000 entries.
func BenchmarkAppend100k(b *testing.B) {
	p := newDiary(b)
	fill(b, p, 100_000)
	start := time.Now()
	p.add(chat.TheOwner, "", "the first")
	took := time.Since(start)
	for b.Loop() {
		p.add(chat.TheOwner, "", "one more")
	}
	b.ReportMetric(float64(took.Milliseconds()), "ms/first")
}
