package telegram_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/timetest"
	"parley/workspace"
)

// Files that people send arrive as files, with what is known of them.
func TestFilesIn(t *testing.T) {
	data := []byte("0123456789")
	for _, tt := range []struct {
		file  telegramtest.File
		want  chat.File
		media string
	}{
		{telegramtest.File{Kind: "photo"}, chat.File{Type: "image/jpeg"}, ""},
		{telegramtest.File{Kind: "document", Name: "a.pdf", Type: "application/pdf"}, chat.File{Name: "a.pdf", Type: "application/pdf"}, ""},
		{telegramtest.File{Kind: "document"}, chat.File{}, ""},
		{telegramtest.File{Kind: "voice", Type: "audio/ogg"}, chat.File{Type: "audio/ogg", Voice: true}, ""},
		{telegramtest.File{Kind: "audio", Name: "song.mp3"}, chat.File{Name: "song.mp3", Type: "audio/mpeg"}, ""},
		{telegramtest.File{Kind: "video", Name: "clip.mov", Type: "video/quicktime"}, chat.File{Name: "clip.mov", Type: "video/quicktime"}, ""},
		{telegramtest.File{Kind: "video_note"}, chat.File{Type: "video/mp4"}, ""},
		{telegramtest.File{Kind: "animation", Name: "a.gif.mp4"}, chat.File{Name: "a.gif.mp4", Type: "video/mp4"}, ""},
		{telegramtest.File{Kind: "sticker"}, chat.File{Type: "image/webp"}, "sticker"},
	} {
		t.Run(tt.file.Kind+tt.file.Name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				tt.file.Data = data
				h.Post(7, tt.file, "look")
				h.run(t)
				h.deliveredTexts()
				if len(h.delivered) != 1 || len(h.delivered[0].Files) != 1 {
					t.Fatalf("delivered %+v", h.delivered)
				}
				m := h.delivered[0]
				got := m.Files[0]
				if m.Text != "look" || m.Media != tt.media || got.Ref == "" || got.Ref == "thumb" {
					t.Errorf("delivered %+v", m)
				}
				if got := h.fetch(t, got); got != string(data) {
					t.Errorf("fetched %q", got)
				}
				tt.want.Size, got.Ref = int64(len(data)), ""
				if got != tt.want {
					t.Errorf("got %+v, want %+v", got, tt.want)
				}
			})
		})
	}
}

func (h *harness) fetch(t *testing.T, f chat.File) string {
	t.Helper()
	body, err := h.ch.Fetch(t.Context(), chat.Message{}, f)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// An animated sticker is not a picture: it stays text.
func TestMovingStickerIsNoFile(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(7, "", with(fields{"sticker": fields{"file_id": "x", "emoji": "😀", "is_animated": true}}))
		h.Say(7, "", with(fields{"sticker": fields{"file_id": "x", "emoji": "😀", "is_video": true}}))
		h.run(t)
		h.wantDelivered(t, "[sticker 😀]", "[sticker 😀]")
	})
}

// Names are the sender's choice: they are kept as they are, for display only.
func TestOddNamesAreTaken(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		names := []string{"../../etc/passwd", "a\x00b.txt", "\u202egpj.exe", strings.Repeat("x", 5000) + ".txt", "<b>&.pdf", "\r\nX: y"}
		for _, name := range names {
			h.Post(7, telegramtest.File{Kind: "document", Name: name, Data: []byte("x")}, "")
		}
		h.run(t)
		h.deliveredTexts()
		for i, m := range h.delivered {
			if m.Files[0].Name != names[i] || m.Files[0].Path != "" {
				t.Errorf("delivered %+v", m.Files)
			}
		}
		if len(h.delivered) != len(names) {
			t.Errorf("delivered %d of %d", len(h.delivered), len(names))
		}
	})
}

// A failed download is an error that says whether to try again, without the token
// (R-S26).
func TestFetchErrors(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		fault        telegramtest.Fault
		permanent    bool
	}{
		{"the server is down", "getFile", telegramtest.Fault{DropBefore: true}, false},
		{"a page of a proxy", "getFile", telegramtest.Fault{Code: 502, Page: "<html>"}, false},
		{"temporarily", "getFile", telegramtest.Fault{Code: 400, Text: "Bad Request: wrong file_id or the file is temporarily unavailable"}, false},
		{"a bad id", "getFile", telegramtest.Fault{Code: 400, Text: "Bad Request: invalid file_id"}, true},
		{"no download", "download", telegramtest.Fault{DropBefore: true}, false},
		{"no download now", "download", telegramtest.Fault{Code: 502, Page: "bad gateway"}, false},
		{"gone", "download", telegramtest.Fault{Code: 404, Page: "not found"}, true},
		{"a redirect", "download", telegramtest.Fault{Code: 302, Page: "moved"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				h.Post(7, telegramtest.File{Kind: "photo", Data: []byte("x")}, "")
				h.run(t)
				h.deliveredTexts()
				h.Fail(tt.method, tt.fault)
				_, err := h.ch.Fetch(t.Context(), h.delivered[0], h.delivered[0].Files[0])
				if err == nil || permanent(err) != tt.permanent {
					t.Errorf("the error is %v", err)
				}
				h.noToken(t, err)
				if got := h.fetch(t, h.delivered[0].Files[0]); got != "x" {
					t.Errorf("then %q", got)
				}
			})
		})
	}
	t.Run("over 20 MB", func(t *testing.T) {
		inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
			h.Post(7, telegramtest.File{Kind: "video", Size: 21 << 20}, "")
			h.run(t)
			h.deliveredTexts()
			_, err := h.ch.Fetch(t.Context(), h.delivered[0], h.delivered[0].Files[0])
			if !permanent(err) || !errors.Is(err, workspace.ErrTooBig) || !strings.Contains(err.Error(), "20 MB") {
				t.Errorf("the error is %v", err)
			}
		})
	})
}

func permanent(err error) bool {
	e, ok := errors.AsType[*channels.Error](err)
	return ok && e.Permanent
}

// In a group the caption of one picture counts for the whole album; other albums
// are not delivered. P1: also over two polls.
func TestAlbumInGroup(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.run(t)
		synctest.Wait()
		post := func(album, caption string) {
			h.Post(group, telegramtest.File{Kind: "photo", Data: []byte("x")}, caption, telegramtest.InAlbum(album))
		}
		post("A", "@parleybot compare")
		post("A", "")
		timetest.Sleep(5 * time.Second)
		post("A", "")
		post("B", "")
		post("B", "for somebody else")
		timetest.Sleep(5 * time.Second)
		h.wantDelivered(t, "compare\n[image/jpeg]", "[image/jpeg]", "[image/jpeg]")
	})
}

// In a group, a question about somebody else's picture includes the picture.
func TestQuotedPictureComesAlong(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		id := h.Post(group, telegramtest.File{Kind: "photo", Data: []byte("x")}, "")
		h.Say(group, "@parleybot what is this?", telegramtest.ReplyTo(id))
		own := h.Post(8, telegramtest.File{Kind: "photo", Data: []byte("x")}, "")
		h.Say(8, "what is this?", telegramtest.ReplyTo(own)) // an earlier message
		h.run(t)
		h.deliveredTexts()
		for _, m := range h.delivered {
			want := 1
			if m.At.Chat == "8" && m.Text != "" {
				want = 0
			}
			if len(m.Files) != want || m.Text != "" && m.Quote.Text != "[photo]" {
				t.Errorf("delivered %+v", m)
			}
		}
	})
}

// picture returns a PNG of that size.
func picture(width, height int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// openFrom opens files from a folder that has these.
func openFrom(t *testing.T, files map[string][]byte) func(string) (*os.File, error) {
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(path string) (*os.File, error) { return os.Open(filepath.Join(dir, path)) }
}

// shown returns what the bot has sent to chat: kind and name of files, the texts,
// and the messages of an album in one line.
func (h *harness) shown(chat int64) (lines []string) {
	album := ""
	for _, m := range h.Chat(chat) {
		if !m.FromBot() {
			continue
		}
		line := m.Text
		for _, f := range m.Files {
			line = strings.TrimRight(f.Kind+" "+f.Name+" "+m.Text, " ")
		}
		if m.Album != "" && m.Album == album {
			lines[len(lines)-1] += ", " + line
		} else {
			lines = append(lines, line)
		}
		album = m.Album
	}
	return lines
}

// D-089: files of replies arrive, each in the form that people expect, in albums
// where Telegram has them. The person is told which files cannot be sent.
func TestFilesOut(t *testing.T) {
	small, text := picture(10, 10), []byte("text")
	open := openFrom(t, map[string][]byte{
		"a.png": small, "b.png": small, "c.jpg": small, "clip.mp4": text, "song.mp3": text, "song2.m4a": text, "voice.ogg": text,
		"report.pdf": text, "notes.txt": text, "anim.gif": text, "noend": small, "empty.txt": nil,
		"wide.png": picture(500, 10), "broken.png": text, "x\u202e\"y\\.txt": text, "<b>&.txt": text,
		"huge.zip": make([]byte, telegramtest.MaxUpload+1), "big.png": append(picture(10, 10), make([]byte, telegramtest.MaxPhoto)...),
	})
	for _, tt := range []struct {
		name  string
		files string
		want  []string
	}{
		{"a photo", "a.png", []string{"photo a.png"}},
		{"a document", "report.pdf", []string{"document report.pdf"}},
		{"music", "song.mp3", []string{"audio song.mp3"}},
		{"a video", "clip.mp4", []string{"video clip.mp4"}},
		{"a voice", "voice.ogg", []string{"voice voice.ogg"}},
		{"something that moves", "anim.gif", []string{"document anim.gif"}},
		{"photos and a video", "a.png b.png clip.mp4", []string{"photo a.png, photo b.png, video clip.mp4"}},
		{"documents", "report.pdf notes.txt", []string{"document report.pdf, document notes.txt"}},
		{"music twice", "song.mp3 song2.m4a", []string{"audio song.mp3, audio song2.m4a"}},
		{"voices are alone", "voice.ogg voice.ogg", []string{"voice voice.ogg", "voice voice.ogg"}},
		{"all kinds", "a.png report.pdf b.png c.jpg", []string{"photo a.png", "document report.pdf", "photo b.png, photo c.jpg"}},
		{"the same name twice", "notes.txt notes.txt", []string{"document notes.txt, document 2-notes.txt"}},
		{"a photo Telegram shows as none", "wide.png", []string{"document wide.png"}},
		{"a photo that is broken", "broken.png", []string{"document broken.png"}},
		{"an album with one of these", "a.png wide.png", []string{"document a.png, document wide.png"}},
		{"a photo over 10 MB", "big.png", []string{"document big.png"}},
		{"a photo over 10 MB in an album", "a.png big.png", []string{"document a.png, document big.png"}},
		{"gone", "gone.pdf", []string{"📎 gone.pdf cannot be opened any more"}},
		{"all gone", "gone.pdf gone.txt", []string{"📎 gone.pdf cannot be opened any more\n📎 gone.txt cannot be opened any more"}},
		{"one gone", "report.pdf gone.txt", []string{"document report.pdf 📎 gone.txt cannot be opened any more"}},
		{"one of many gone", "report.pdf gone.txt notes.txt", []string{"document report.pdf 📎 gone.txt cannot be opened any more, document notes.txt"}},
		{"empty", "empty.txt", []string{"📎 empty.txt is empty"}},
		{"over 50 MB", "huge.zip", []string{"📎 huge.zip is larger than the 50 MB that I may send here"}},
		{"an odd name", "x\u202e\"y\\.txt", []string{"document txt"}},
		{"odd names in an album", "x\u202e\"y\\.txt <b>&.txt", []string{"document txt, document _b_&.txt"}},
		{"HTML in the name of what is gone", "<b>gone&lt;", []string{"📎 _b_gone&lt; cannot be opened any more"}},
		{"elsewhere", "../../etc/passwd", []string{"📎 passwd cannot be opened any more"}},
		{"a name of nothing", "\u202e", []string{"📎 file cannot be opened any more"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Open, c.Rate = open, -1 }, func(t *testing.T, h *harness) {
				h.Say(7, "hello")
				r := to("7", "**here**")
				for _, f := range strings.Fields(tt.files) {
					r.Files = append(r.Files, chat.File{Path: f})
				}
				for _, part := range channels.Parts(h.ch, r) {
					rc, err := h.ch.Send(t.Context(), part)
					if err != nil {
						t.Fatal(err)
					}
					if len(part.Files) > 0 && rc != channels.Receipt(fmt.Sprintf("7/%d", h.firstOfAlbum(7))) {
						t.Errorf("the receipt is %s", rc)
					}
				}
				if got, want := h.shown(7), append([]string{"here"}, tt.want...); !slices.Equal(got, want) {
					t.Errorf("shown %q, want %q", got, want)
				}
			})
		})
	}
}

// firstOfAlbum returns the id of the newest message, or of the first of its album.
func (h *harness) firstOfAlbum(chat int64) (id int) {
	ms := h.Chat(chat)
	last := ms[len(ms)-1]
	for _, m := range slices.Backward(ms) {
		if m.ID == last.ID || last.Album != "" && m.Album == last.Album {
			id = m.ID
		}
	}
	return id
}

// The media type decides for a file without an extension. An album has at most ten files.
func TestSplitFiles(t *testing.T) {
	h := newHarness(t, telegramtest.Config{}, nil)
	r := to("7", "")
	for i := range 23 {
		r.Files = append(r.Files, chat.File{Path: fmt.Sprint(i), Type: "image/png"})
	}
	r.Ask = &chat.Question{ID: "q", Choices: []string{"yes"}}
	parts := channels.Parts(h.ch, r)
	if len(parts) != 3 || len(parts[0].Files) != 10 || len(parts[2].Files) != 3 {
		t.Errorf("parts: %+v", parts)
	}
	r.Text = strings.Repeat("word ", 2000)
	parts = channels.Parts(h.ch, r)
	for i, p := range parts {
		if (p.Ask != nil) != (i == 2) || len(p.Files) > 0 != (i > 2) {
			t.Errorf("part %d: %+v", i, p)
		}
	}
}

// P9, P10: a failed upload is repeated from the first byte.
func TestP9UploadAgain(t *testing.T) {
	for name, f := range map[string]telegramtest.Fault{
		"lost": {DropBefore: true}, "refused for now": {Code: 429, Text: "Too Many Requests", RetryAfter: 3}, "down": {Code: 502, Page: "<html>"},
	} {
		for _, files := range [][]string{{"a.png"}, {"a.png", "b.png"}} {
			t.Run(fmt.Sprint(name, files), func(t *testing.T) {
				open := openFrom(t, map[string][]byte{"a.png": picture(300, 300), "b.png": picture(300, 300)})
				inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Open = open }, func(t *testing.T, h *harness) {
					h.Say(7, "hello")
					r := to("7", "")
					r.Group, r.Quote = true, "1"
					for _, name := range files {
						r.Files = append(r.Files, chat.File{Path: name})
					}
					h.Fail("sendPhoto", f)
					h.Fail("sendMediaGroup", f)
					_, err := h.ch.Send(t.Context(), r)
					if err == nil || permanent(err) {
						t.Errorf("the error is %v", err)
					}
					h.noToken(t, err)
					timetest.Sleep(5 * time.Second)
					if _, err := h.ch.Send(t.Context(), r); err != nil {
						t.Fatal(err)
					}
					m := h.last(7)
					if len(m.Files) != 1 || !bytes.Equal(m.Files[0].Data, picture(300, 300)) || m.ReplyTo != 1 {
						t.Errorf("sent %d files to %d", len(m.Files), m.ReplyTo)
					}
				})
			})
		}
	}
}

// P10: an error that no other form avoids is permanent.
func TestP10UploadRefused(t *testing.T) {
	open := openFrom(t, map[string][]byte{"a.png": picture(10, 10)})
	for _, tt := range []struct {
		fault    telegramtest.Fault
		attempts int
	}{
		{telegramtest.Fault{Times: -1, Code: 403, Text: "Forbidden: bot was blocked by the user"}, 1},
		{telegramtest.Fault{Times: -1, Code: 413, Text: "Request Entity Too Large"}, 1},
		{telegramtest.Fault{Times: -1, Code: 400, Text: "Bad Request: not enough rights to send photos to the chat"}, 2},
	} {
		inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Open = open }, func(t *testing.T, h *harness) {
			h.Say(7, "hello")
			h.Fail("sendPhoto", tt.fault)
			h.Fail("sendDocument", tt.fault)
			r := to("7", "")
			r.Files = []chat.File{{Path: "a.png"}}
			_, err := h.ch.Send(t.Context(), r)
			if n := h.Count("sendPhoto") + h.Count("sendDocument"); !permanent(err) || n != tt.attempts {
				t.Errorf("%v after %d attempts", err, n)
			}
		})
	}
}

// An upload follows a group that moved.
func TestUploadFollowsMigration(t *testing.T) {
	open := openFrom(t, map[string][]byte{"a.png": picture(10, 10)})
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Open = open }, func(t *testing.T, h *harness) {
		h.Say(-5, "hello")
		h.Migrate(-5, group, true)
		r := to("-5", "")
		r.Files = []chat.File{{Path: "a.png"}}
		if _, err := h.ch.Send(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got := h.shown(group); !slices.Equal(got, []string{"photo a.png"}) {
			t.Errorf("shown %q", got)
		}
	})
}

// P9: a small upload ends after 30 s. A large one has more time, but not for ever.
func TestP9LargeUploadsMayBeSlow(t *testing.T) {
	open := openFrom(t, map[string][]byte{"small": []byte("x"), "large": make([]byte, 2<<20)})
	for _, tt := range []struct {
		name   string
		delay  time.Duration
		wanted bool
	}{{"small", time.Minute, false}, {"large", time.Minute, true}, {"large", time.Hour, false}} {
		inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Open = open }, func(t *testing.T, h *harness) {
			h.Say(7, "hello")
			h.Fail("sendDocument", telegramtest.Fault{Delay: tt.delay})
			r := to("7", "")
			r.Files = []chat.File{{Path: tt.name}}
			if _, err := h.ch.Send(t.Context(), r); (err == nil) != tt.wanted || permanent(err) {
				t.Errorf("%s after %v: %v", tt.name, tt.delay, err)
			}
		})
	}
}

// Over a real socket the file is streamed and arrives unchanged.
func TestUploadOverSocket(t *testing.T) {
	data := append(picture(2000, 2000), make([]byte, 5<<20)...)
	open := openFrom(t, map[string][]byte{"a.bin": data, "b.bin": data[1:]})
	s := telegramtest.NewServer(telegramtest.Config{})
	defer s.Close()
	h := newHarness(t, telegramtest.Config{}, func(c *telegram.Config) {
		c.Open, c.APIURL, c.Client, c.Rate = open, s.URL, &http.Client{}, -1
	})
	s.Say(7, "hello")
	r := to("7", "")
	r.Files = []chat.File{{Path: "a.bin"}, {Path: "b.bin"}}
	if _, err := h.ch.Send(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	ms := s.Chat(7)
	if len(ms) != 3 || !bytes.Equal(ms[1].Files[0].Data, data) || !bytes.Equal(ms[2].Files[0].Data, data[1:]) {
		t.Errorf("%d messages, or other bytes", len(ms))
	}
}
