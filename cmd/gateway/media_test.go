package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/channels/discord/discordtest"
	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
)

// picture is a small PNG.
func picture(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// inbox returns the files of the workspace's inbox.
func (w *testGateway) inbox() (names []string) {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.dir, "workspace", "inbox", "*", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}

// TestPictureOverACrash: a picture whose download was cut short is fetched
// after the restart, kept once, shown to the model, and answered once.
func TestPictureOverACrash(t *testing.T) {
	for at, point := range map[string]string{"telegram": "after getFile", "discord": "after GET /channels/{id}/messages/{id}"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			s := newSiege(t, at, 1, func(w *testGateway) { w.model["vision"] = true })
			shot := picture(t)
			s.asked[0]++
			s.killAt(nth(1, point), func() {
				if at == "telegram" {
					s.tg.Post(person, telegramtest.File{Kind: "photo", Data: shot}, "plain 2")
				} else {
					s.dc.Say(s.dc.DM(fmt.Sprint(person)), fmt.Sprint(person), "", "plain 2", discordtest.Attach(discordtest.File{Name: "shot.png", Type: "image/png", Data: shot}))
				}
			})
			if n := len(s.llm.Requests()); n != 1 {
				t.Errorf("the model was asked %d times before the picture was there", n-1)
			}
			s.revive()
			s.answered()
			s.lift()
			rs := s.llm.Requests()
			last := rs[len(rs)-1].Messages
			if pics := last[len(last)-1].Images; len(pics) != 1 || pics[0].Type != "image/png" || len(pics[0].Data) == 0 {
				t.Errorf("the model was shown %+v", pics)
			}
			if names := s.inbox(); len(names) != 1 {
				t.Errorf("the inbox has %q", names)
			} else if b, err := os.ReadFile(names[0]); err != nil || !bytes.Equal(b, shot) {
				t.Errorf("the inbox has another picture: %v", err)
			}
		})
	}
}

// TestVoice: what was spoken is heard if something can listen; else the person
// is told so, once.
func TestVoice(t *testing.T) {
	voice := []byte("OggS\x00 so to speak")
	for _, listens := range []bool{true, false} {
		t.Run(fmt.Sprint("listens ", listens), func(t *testing.T) {
			t.Parallel()
			w := newTestGateway(t, echo)
			dc := w.discord(discordtest.Config{})
			if listens {
				w.llm.Hear = func(_ context.Context, s llmtest.Speech) llmtest.Reply {
					return llmtest.Reply{Text: fmt.Sprint("words of ", len(s.Audio), " bytes")}
				}
				w.more["transcription"] = map[string]any{"baseUrl": w.llm.URL(), "apiKey": "${TOWN_MODEL_KEY}", "model": "whisper-1"}
			}
			w.start()
			w.online()
			dm := dc.DM(fmt.Sprint(person))
			w.tg.Post(person, telegramtest.File{Kind: "voice", Type: "audio/ogg", Data: voice}, "")
			dc.Say(dm, fmt.Sprint(person), "", "", discordtest.Attach(discordtest.File{Name: "voice-message.ogg", Type: "audio/ogg", Data: voice, Voice: true}))
			want := func(text string) bool { return text == fmt.Sprint("heard words of ", len(voice), " bytes") }
			if !listens {
				want = func(text string) bool { return strings.Contains(text, "I could not listen to your voice message") }
			}
			w.told(person, "an answer", func(texts []string) bool { return slices.ContainsFunc(texts, want) })
			w.shown(dm, "an answer", func(m discordtest.Message) bool { return m.FromBot() && want(m.Text) })
			w.tg.Say(person, "bye")
			texts := w.told(person, "the next answer", func(texts []string) bool { return strings.HasSuffix(texts[len(texts)-1], "bye") })
			dc.Say(dm, fmt.Sprint(person), "", "bye")
			w.shown(dm, "the next answer", func(m discordtest.Message) bool { return m.FromBot() && strings.HasSuffix(m.Text, "bye") })
			for _, m := range dc.Messages(dm) {
				if m.FromBot() {
					texts = append(texts, m.Text)
				}
			}
			if n := len(slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !want(text) })); n != 2 {
				t.Errorf("it was said %d times at two places: %q", n, texts)
			}
		})
	}
}

// TestFilesGoOut: the agent sends files of its workspace, and no others (D-089).
func TestFilesGoOut(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		file, found := strings.CutPrefix(spokenLast(r), "send ")
		switch rs := results(r); {
		case len(rs) > 0:
			return llmtest.Reply{Text: "the tool says: " + rs[0]}
		case found:
			return llmtest.Reply{Calls: call("message", fmt.Sprintf(`{"text": "here it is", "media": [%q]}`, file))}
		}
		return echo(ctx, r)
	})
	dc := w.discord(discordtest.Config{})
	w.owners = append(w.owners, "web", fmt.Sprint("discord:", person)) // whose files are the same everywhere
	w.start()
	w.online()
	v, dm := w.visit(), dc.DM(fmt.Sprint(person))
	const report = "all is well\n"
	if err := os.WriteFile(filepath.Join(w.dir, "workspace", "report.txt"), []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(w.dir, "workspace", "link.txt")); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i, file := range []string{"report.txt", "/etc/passwd", "../config.json", "link.txt", "../parley.db"} {
		says := func(text string) bool { return strings.Contains(text, "media path is not allowed") }
		if i == 0 {
			says = func(text string) bool { return strings.Contains(text, "with 1 attachments") }
		} else {
			refused++
		}
		ended := func(text string) bool { // a piece of it may be shown before
			return strings.Contains(text, "the tool says: ") && (strings.Contains(text, "media path is not allowed") || strings.Contains(text, "attachments"))
		}
		ends := func(texts []string) (n int) {
			for _, text := range texts {
				if ended(text) {
					n++
				}
			}
			return n
		}
		w.tg.Say(person, "send "+file)
		texts := w.told(person, "the end", func(texts []string) bool { return ends(texts) == i+1 })
		dc.Say(dm, fmt.Sprint(person), "", "send "+file)
		var onDiscord, ids []string
		w.shown(dm, "the end", func(m discordtest.Message) bool {
			if ended(m.Text) && !slices.Contains(ids, m.ID) {
				onDiscord, ids = append(onDiscord, m.Text), append(ids, m.ID)
			}
			return len(onDiscord) == i+1
		})
		v.say("first", fmt.Sprint("message-", i), "send "+file)
		lines := v.reads("first", "the end", func(ls []line) bool { return ends(spokenBy(ls, "parley")) == i+1 })
		for _, last := range []string{texts[len(texts)-1], onDiscord[i], lines[len(lines)-1].Text} {
			if !says(last) {
				t.Errorf("%s: %q", file, last)
			}
		}
	}
	sent := 0
	for _, m := range w.tg.Chat(person) {
		for _, f := range m.Files {
			if sent++; f.Kind != "document" || f.Name != "report.txt" || string(f.Data) != report {
				t.Errorf("telegram: %s %q %q", f.Kind, f.Name, f.Data)
			}
		}
	}
	for _, m := range dc.Messages(dm) {
		for _, f := range m.Files {
			if sent++; f.Name != "report.txt" || string(f.Data) != report {
				t.Errorf("discord: %q %q", f.Name, f.Data)
			}
		}
	}
	for _, l := range v.reads("first", "everything", func(ls []line) bool { return len(spokenBy(ls, "you")) == refused+1 }) {
		for _, f := range l.Files {
			status, body := v.do("GET", f.URL, nil)
			if sent++; f.Name != "report.txt" || status != 200 || body != report {
				t.Errorf("web: %q: %d %q", f.Name, status, body)
			}
			if status, body := w.invite("anna").do("GET", f.URL, nil); status != 404 {
				t.Errorf("web: another person's download: %d %q", status, body)
			}
		}
	}
	if sent != 3 {
		t.Errorf("%d files were sent", sent)
	}
}
