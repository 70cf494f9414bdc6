package files

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// D-052: a picture is shown to a model with eyes, and described to others.
func TestReadPicture(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 640, 480))); err != nil {
		t.Fatal(err)
	}
	d.put("a/real.txt", b.String())
	d.put("webp", "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")
	d.put("cut.png", "\x89PNG\r\n\x1a\n\x00\x00")
	d.put("win.bmp", "BM\x00\x00\x00\x00")
	d.put("big.png", b.String())
	if err := os.Truncate(filepath.Join(d.w.Dir(), "big.png"), 6<<20); err != nil {
		t.Fatal(err)
	}
	kb := (b.Len() + 1023) / 1024
	for _, c := range []struct{ path, want, picture string }{
		{"a/real.txt", fmt.Sprintf("(Image file: a/real.txt, image/png, %d KB, 640x480)", kb), "a/real.txt"},
		{"webp", "(Image file: webp, image/webp, 1 KB)", "webp"},
		{"cut.png", "(Image file: cut.png, image/png, 1 KB. It cannot be shown: picture: unexpected EOF)", ""},
		{"win.bmp", "(Image file: win.bmp, image/bmp, 1 KB. It cannot be shown: picture: not a PNG, JPEG, GIF or WebP, but image/bmp)", ""},
		{"big.png", "(Image file: big.png, image/png, 6144 KB, 640x480. It cannot be shown: picture of 5242881 bytes: more than 5242880)", ""},
	} {
		r := d.call("s", "read_file", fmt.Sprintf(`{"path":%q}`, c.path))
		shown := ""
		if len(r.Pictures) > 0 {
			shown = d.at("./" + r.Pictures[0]).String()
		}
		if r.Text != c.want || r.Failed || shown != c.picture {
			t.Errorf("D-052: %q, failed %v, pictures %q\nwant %q", r.Text, r.Failed, r.Pictures, c.want)
		}
	}
}

// D-056: what the model still sees it is not given again.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	path := filepath.Join(d.w.Dir(), "a.txt")
	old := time.Now().Add(-time.Hour)
	put := func(text string) {
		d.put("a.txt", text)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	put("one\ntwo\n")
	d.put("a.pdf", pagesOf(draw("text")))
	visible := []string{}
	n := 0
	read := func(session chat.SessionID, args string) string {
		n++
		c := tools.Call{ToolCall: llm.ToolCall{ID: fmt.Sprint(n), Name: "read_file", Args: args}}
		c.Scope = tools.Scope{Session: session, Workspace: d.w, Turn: "turn", Shown: func(key string) bool { return slices.Contains(visible, key) }}
		visible = append(visible, c.Key())
		text := d.kit.Call(t.Context(), c).Text
		text, _, _ = strings.Cut(text, "\n\n(")
		return text
	}
	const all, same = "1| one\n2| two", "[File unchanged since last read: a.txt]"
	for _, c := range []struct {
		name string
		do   func()
		args string
		want string
	}{
		{"first", nil, `{"path":"a.txt"}`, all},
		{"again", nil, `{"path":"a.txt"}`, same},
		{"and again", nil, `{"path":"a.txt","offset":1,"limit":2000}`, same},
		{"another name", nil, `{"path":"./a.txt"}`, "[File unchanged since last read: ./a.txt]"},
		{"forced", nil, `{"path":"a.txt","force":true}`, all},
		{"another range", nil, `{"path":"a.txt","offset":2}`, "2| two"},
		{"that range again", nil, `{"path":"a.txt","offset":2}`, same},
		{"all of it", nil, `{"path":"a.txt"}`, all},
		{"compacted away", func() { visible = nil }, `{"path":"a.txt"}`, all},
		{"touched", func() { old = old.Add(time.Minute); put("one\ntwo\n") }, `{"path":"a.txt"}`, all},
		{"same size and time", func() { put("one\nsix\n") }, `{"path":"a.txt"}`, "1| one\n2| six"},
		{"written by the session", func() { d.call("s", "write_file", `{"path":"a.txt","content":"one\nsix\n"}`) }, `{"path":"a.txt"}`, "1| one\n2| six"},
		{"pdf", nil, `{"path":"a.pdf"}`, "--- Page 1 ---\ntext"},
		{"pdf again", nil, `{"path":"a.pdf"}`, "[File unchanged since last read: a.pdf]"},
		{"other pages", nil, `{"path":"a.pdf","pages":"1"}`, "--- Page 1 ---\ntext"},
	} {
		if c.do != nil {
			c.do()
		}
		if got := read("s", c.args); got != c.want {
			t.Errorf("D-056 %s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := read("other", `{"path":"a.pdf"}`); got != "--- Page 1 ---\ntext" {
		t.Errorf("D-056 another session: %q", got)
	}
	for range 2 { // a Scope that cannot tell
		if r := d.call("s", "read_file", `{"path":"a.txt"}`); strings.HasPrefix(r.Text, "[") {
			t.Errorf("D-056 without Shown: %q", r.Text)
		}
	}
}

// D-067: what a session knows of a file.
func TestSeen(t *testing.T) {
	d := newDesk(t)
	s := &readStates{}
	call := func(session string) tools.Call {
		return tools.Call{Scope: tools.Scope{Session: chat.SessionID(session), Workspace: d.w}}
	}
	now := [32]byte{1}
	if got := s.warning(call("a"), d.at("x"), now); got != notRead {
		t.Errorf("unread: %q", got)
	}
	s.note(call("a"), d.at("x"), readState{mtime: 1, hash: now})
	if got := s.warning(call("a"), d.at("x"), now); got != "" {
		t.Errorf("touched only: %q", got)
	}
	if got := s.warning(call("a"), d.at("x"), [32]byte{}); got != modified {
		t.Errorf("modified: %q", got)
	}
	if got := s.warning(call("b"), d.at("x"), now); got != notRead {
		t.Errorf("another session: %q", got)
	}
	for i := range maxStates + 10 {
		s.note(call(fmt.Sprint(i%7)), d.at(fmt.Sprint(i)), readState{hash: now})
	}
	if n := len(s.states); n != maxStates {
		t.Errorf("%d looks are remembered", n)
	}
	if got := s.warning(call(fmt.Sprint((maxStates+9)%7)), d.at(fmt.Sprint(maxStates+9)), now); got != "" {
		t.Errorf("the last look is forgotten: %q", got)
	}
}

// BenchmarkReadParallel10 reads ten files of 100 KB at once through the pipeline.
func BenchmarkReadParallel10(b *testing.B) {
	d := newDesk(b)
	for i := range 10 {
		d.put(fmt.Sprint(i), lines(10_000))
	}
	for b.Loop() {
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if r := d.call("s", "read_file", fmt.Sprintf(`{"path":"%d"}`, i)); r.Failed {
					b.Error(r.Text)
				}
			})
		}
		wg.Wait()
	}
}
