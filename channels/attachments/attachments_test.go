package attachments_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"parley/channels"
	"parley/channels/attachments"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
	"parley/workspace"
)

const zip = "PK\x03\x04 and so on"

// A post is an Inbox that takes in files from the channel "net".
type post struct {
	inbox *attachments.Inbox
	cfg   attachments.Config
	t     *testing.T
	fake  channeltest.Fake
	files *workspace.Workspace
	body  func(ref string) (io.ReadCloser, error) // instead of the fake's
}

// brings is the channel of a post.
type brings struct{ p *post }

func (brings) Run(context.Context, chat.Deliver) error                           { return nil }
func (brings) Send(context.Context, chat.Reply) (rc channels.Receipt, err error) { return "", nil }

func (b brings) Fetch(ctx context.Context, m chat.Message, f chat.File) (io.ReadCloser, error) {
	if b.p.body != nil {
		return b.p.body(f.Ref)
	}
	return b.p.fake.As(channeltest.All).(channels.Fetcher).Fetch(ctx, m, f)
}

// in runs f with a post, where time is free of charge.
func in(t *testing.T, f func(t *testing.T, p *post)) {
	timetest.Test(t, func(t *testing.T) {
		files, err := workspace.Open(filepath.Join(t.TempDir(), "work"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { files.Close() })
		p := &post{t: t, files: files}
		p.fake.Files = map[string][]byte{}
		p.cfg = config(files)
		p.cfg.Channel = func(name string) channels.Channel {
			if name != "net" {
				return nil
			}
			return brings{p}
		}
		p.inbox = attachments.New(p.cfg)
		f(t, p)
	})
}

func config(files *workspace.Workspace) attachments.Config {
	return attachments.Config{
		Files:      files,
		Store:      mem.New(),
		Log:        slog.New(slog.DiscardHandler),
		Texts:      &texts.English().Channels,
		RoleOf:     func(context.Context, chat.Message) (chat.Role, error) { return chat.User, nil },
		TakeBytes:  func(context.Context, chat.Person, int64) error { return nil },
		CheckSpace: func() error { return nil },
	}
}

var room = chat.Address{Channel: "net", Chat: "1"}

func (p *post) bring(f chat.File, data string) chat.Message {
	f.Ref = "ref"
	p.fake.Files[f.Ref] = []byte(data)
	return chat.Message{ID: "7", At: room, Text: "look", Files: []chat.File{f}, Time: time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)}
}

// all lists the files of the workspace, which are below inbox/.
func (p *post) all() (names []string) {
	err := filepath.WalkDir(p.files.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(p.files.Dir(), path)
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
	return names
}

// The same message has the same files, which are what they hold.
func TestFetch(t *testing.T) {
	in(t, func(t *testing.T, p *post) {
		msg := p.bring(chat.File{Name: "notes.txt", Size: 5}, "hello")
		msg.Files = append(msg.Files, msg.Files[0], chat.File{Name: "notes.txt", Path: "seen"})
		if err := p.files.Names().WriteFile("seen", []byte("there already")); err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(msg.Files)
		got := p.inbox.Fetch(t.Context(), msg)
		again := p.inbox.Fetch(t.Context(), msg)
		if !slices.Equal(got.Files, again.Files) || !slices.Equal(msg.Files, before) {
			t.Errorf("%+v, then %+v, of %+v", got.Files, again.Files, msg.Files)
		}
		if all := p.all(); len(all) != 3 || got.Notice != "" || got.Media != "" || got.Text != "look" {
			t.Errorf("%q, %+v", all, got)
		}
		for i, f := range got.Files[:2] {
			data, err := p.files.Names().ReadFile(f.Path)
			inbox := chat.Whose(msg.At, msg.From, msg.Group).InboxFolder()
			if err != nil || string(data) != "hello" || f.Type != "text/plain" || f.Size != 5 || !strings.HasPrefix(f.Path, inbox+"/2026-11-21/") {
				t.Errorf("file %d: %+v: %q, %v", i, f, data, err)
			}
		}
		if plain := p.inbox.Fetch(t.Context(), (chat.Message{ID: "8", At: room, Text: "hi"})); plain.Text != "hi" || plain.Files != nil {
			t.Errorf("%+v", plain)
		}
	})
}

// R-S18: names lead nowhere and show as what they are.
func TestRS18Names(t *testing.T) {
	for name, want := range map[string]string{
		"report.pdf":                        "report.pdf",
		"Größe 家 😀.png":                     "Größe 家 😀.png",
		"../../etc/passwd":                  "passwd",
		`..\..\boot.ini`:                    "boot.ini",
		"/etc/cron.d/x":                     "x",
		"a\x00b.txt":                        "ab.txt",
		"a\r\nb\x1b[31m.txt":                "a  b[31m.txt",
		"exe\u202egpj.scr":                  "exegpj.scr",
		"\u200f\u2066x\ufeff.txt":           "x.txt",
		"...hidden":                         "hidden",
		".":                                 "application",
		"..":                                "application",
		"":                                  "application",
		"dir/":                              "application",
		"con:aux*?<>|\"`$.txt":              "con_aux________.txt",
		"bad\xff\xfeutf.txt":                "badutf.txt",
		strings.Repeat("n", 5000) + ".pdf":  strings.Repeat("n", 76) + ".pdf",
		strings.Repeat("é", 5000) + ".pdf":  strings.Repeat("é", 38) + ".pdf",
		"a." + strings.Repeat("x", 5000):    "a." + strings.Repeat("x", 78),
		strings.Repeat("../", 1000) + "end": "end",
	} {
		in(t, func(t *testing.T, p *post) {
			got := p.inbox.Fetch(t.Context(), p.bring(chat.File{Name: name, Type: "application/x-thing"}, "\x00\x01"))
			path := got.Files[0].Path
			if all := p.all(); len(all) != 1 || all[0] != path || len(filepath.Base(path)) > 100 {
				t.Errorf("%.40q: path %q, in the workspace %q", name, path, all)
			}
			if _, end, _ := strings.Cut(filepath.Base(path), "-"); end != want || strings.ContainsFunc(end, unicode.IsControl) {
				t.Errorf("%.40q is called %q, want %q", name, end, want)
			}
		})
	}
}

// What a file is, its bytes say.
func TestFetchType(t *testing.T) {
	png, ogg := "\x89PNG\r\n\x1a\n", "OggS\x00"
	for _, c := range []struct{ name, claim, data, want string }{
		{"bomb.png", "image/png", zip, "application/zip"},
		{"bomb.png", "", zip, "application/zip"},
		{"page.jpg", "image/jpeg", "<html><script>", "text/html"},
		{"a.png", "image/png", "just words", "text/plain"},
		{"a.png", "image/png", "\x00\x01\x02", "application/octet-stream"},
		{"a.png", "image/png", "", "text/plain"},
		{"a.bin", "application/octet-stream", png, "image/png"},
		{"a", "", png, "image/png"},
		{"a.mp3", "audio/mpeg", zip, "application/zip"},
		{"voice", "audio/ogg", ogg, "audio/ogg"},
		{"voice", "text/html", ogg, "application/ogg"},
		{"a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", zip,
			"application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.json", "application/json; charset=utf-8", "{}", "application/json"},
		{"a", "image/svg+xml", "<?xml version='1.0'?><svg/>", "text/xml"},
		{"a", "nonsense;;;\x00", "\x00\x01", "application/octet-stream"},
	} {
		in(t, func(t *testing.T, p *post) {
			got := p.inbox.Fetch(t.Context(), p.bring(chat.File{Name: c.name, Type: c.claim}, c.data))
			if f := got.Files[0]; f.Type != c.want || f.Path == "" {
				t.Errorf("%s, said to be %q, is %q, want %q (%q)", c.name, c.claim, f.Type, c.want, got.Notice)
			}
		})
	}
}

// What cannot be had is told, and the rest of the message goes on.
func TestFetchTrouble(t *testing.T) {
	endless := func(string) (io.ReadCloser, error) { return io.NopCloser(&flood{}), nil }
	for _, c := range []struct {
		name   string
		file   chat.File
		body   func(string) (io.ReadCloser, error)
		notice string
		most   time.Duration
	}{
		{"declared too big", chat.File{Name: "a.zip", Size: 20<<20 + 1}, endless, "I could not receive a.zip because it is too big.", 0},
		{"100 MB undeclared", chat.File{Name: "a.zip"}, endless, "I could not receive a.zip because it is too big.", 0},
		{"gone", chat.File{Name: "a.zip"}, func(string) (io.ReadCloser, error) {
			return nil, &channels.Error{Permanent: true, Err: errors.New("404")}
		}, "I could not receive a.zip because it is no longer there.", 0},
		{"always down", chat.File{}, func(string) (io.ReadCloser, error) { return nil, errors.New("no route") },
			"I could not receive a file.", 2 * time.Minute},
		{"breaks midway", chat.File{Name: "a.zip"}, func(string) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader(zip), broke{})), nil
		}, "I could not receive a.zip.", 2 * time.Minute},
		{"hangs", chat.File{Name: "a.zip"}, func(string) (io.ReadCloser, error) {
			r, _ := io.Pipe()
			return r, nil
		}, "I could not receive a.zip.", 2 * time.Minute},
		{"panics", chat.File{Name: "a.zip"}, func(string) (io.ReadCloser, error) { panic("bug") }, "I could not receive a.zip.", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T, p *post) {
				msg := p.bring(c.file, "hello")
				good := msg.Files[0]
				good.Path, good.Size = "good.txt", 0
				if err := p.files.Names().WriteFile("good.txt", []byte("hi")); err != nil {
					t.Fatal(err)
				}
				msg.Files, msg.Notice, msg.Media = append(msg.Files, good), "Be patient.", "document"
				p.body = c.body
				start := time.Now()
				got := p.inbox.Fetch(t.Context(), msg)
				if took := time.Since(start); took > c.most {
					t.Errorf("took %v", took)
				}
				if got.Notice != "Be patient. "+c.notice || got.Files[0].Path != "" || got.Files[1].Type != "text/plain" {
					t.Errorf("notice %q, files %+v", got.Notice, got.Files)
				}
				if !strings.HasPrefix(got.Media, "document, ") || !strings.Contains(got.Media, "not taken in") {
					t.Errorf("media %q", got.Media)
				}
				if all := p.all(); len(all) != 1 {
					t.Errorf("left in the workspace: %q", all)
				}
			})
		})
	}
}

// A flood is 100 MB.
type flood struct{ n int }

func (f *flood) Read(p []byte) (int, error) {
	if f.n += len(p); f.n > 100<<20 {
		return 0, io.EOF
	}
	return len(p), nil
}

type broke struct{}

func (broke) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// P10: what fails for a while is tried again, from its beginning.
func TestP10FetchAgain(t *testing.T) {
	in(t, func(t *testing.T, p *post) {
		tries := 0
		p.body = func(string) (io.ReadCloser, error) {
			switch tries++; tries {
			case 1:
				return nil, errors.New("no route")
			case 2:
				return io.NopCloser(io.MultiReader(strings.NewReader("hel"), broke{})), nil
			case 3:
				return nil, &channels.Error{After: 30 * time.Second, Err: errors.New("429")}
			}
			return io.NopCloser(strings.NewReader("hello")), nil
		}
		got := p.inbox.Fetch(t.Context(), p.bring(chat.File{Name: "a.txt"}, ""))
		data, err := p.files.Names().ReadFile(got.Files[0].Path)
		if err != nil || string(data) != "hello" || tries != 4 || len(p.all()) != 1 {
			t.Errorf("%q, %v after %d tries: %q", data, err, tries, p.all())
		}
	})
}

// What is big does not pass through memory.
func TestFetchStreams(t *testing.T) {
	in(t, func(t *testing.T, p *post) {
		p.body = func(string) (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(&flood{}, 20<<20)), nil }
		msg := p.bring(chat.File{Name: "big.bin"}, "")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := p.inbox.Fetch(t.Context(), msg)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 || got.Files[0].Size != 20<<20 {
			t.Errorf("%d bytes of memory for %+v", took, got.Files[0])
		}
	})
}

// When the turn is over, the message is as it was.
func TestFetchEnds(t *testing.T) {
	in(t, func(t *testing.T, p *post) {
		p.body = func(string) (io.ReadCloser, error) { return nil, errors.New("no route") }
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		msg := p.bring(chat.File{Name: "a.txt"}, "")
		start := time.Now()
		if got := p.inbox.Fetch(ctx, msg); got.Notice != "" || got.Media != "" || got.Files[0] != msg.Files[0] {
			t.Errorf("%+v", got)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// Voice becomes text, or the person is asked to write.
func TestFetchVoice(t *testing.T) {
	heard := ""
	hears := func(text string, err error) func(context.Context, string, io.Reader) (string, error) {
		return func(_ context.Context, name string, audio io.Reader) (string, error) {
			data, _ := io.ReadAll(audio)
			heard = name + ": " + string(data)
			return text, err
		}
	}
	for _, c := range []struct {
		name        string
		transcribe  func(context.Context, string, io.Reader) (string, error)
		text, media string
		told        bool
	}{
		{"words", hears(" buy milk\n", nil), "look\n\nbuy milk", "voice 12 s, transcribed", false},
		{"silence", hears(" ", nil), "look", "voice 12 s, not listened to", true},
		{"fails", hears("half", errors.New("503")), "look", "voice 12 s, not listened to", true},
		{"panics", func(context.Context, string, io.Reader) (string, error) { panic("bug") }, "look", "voice 12 s, not listened to", true},
		{"not configured", nil, "look", "voice 12 s, not listened to", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T, p *post) {
				p.cfg.Transcribe = c.transcribe
				p.inbox = attachments.New(p.cfg)
				msg := p.bring(chat.File{Type: "audio/ogg", Voice: true}, "OggS\x00")
				msg.Media = "voice 12 s"
				got := p.inbox.Fetch(t.Context(), msg)
				if got.Text != c.text || got.Media != c.media || strings.Contains(got.Notice, "write") != c.told {
					t.Errorf("%+v", got)
				}
				if all := p.all(); len(all) != 1 || all[0] != got.Files[0].Path || !strings.HasSuffix(all[0], "-audio.ogg") {
					t.Errorf("%q, %+v", all, got.Files)
				}
			})
		})
	}
	if !strings.HasSuffix(heard, "-audio.ogg: OggS\x00") {
		t.Errorf("heard %q", heard)
	}
}

// Without a workspace, and from a channel without files, nothing is taken in, and
// the person is told.
func TestFetchWithout(t *testing.T) {
	in(t, func(t *testing.T, p *post) {
		homeless := p.cfg
		homeless.Files = nil
		fileless := p.cfg
		fileless.Channel = func(string) channels.Channel { return p.fake.As(0) }
		msg := chat.Message{ID: "8", At: room, Text: "look", Files: []chat.File{{Name: "a.txt", Ref: "r"}}}
		for _, cfg := range []attachments.Config{homeless, fileless} {
			if got := attachments.New(cfg).Fetch(t.Context(), msg); got.Notice != "I could not receive a.txt." {
				t.Errorf("%+v", got)
			}
		}
		msg.At.Channel = "gone"
		if got := p.inbox.Fetch(t.Context(), msg); got.Notice != "I could not receive a.txt." {
			t.Errorf("%+v", got)
		}
	})
}

// P19: a disk that takes nothing is not waited for.
func TestP19Fetch(t *testing.T) {
	in(t, func(t *testing.T, p *post) {
		if err := os.WriteFile(filepath.Join(p.files.Dir(), "inbox"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got := p.inbox.Fetch(t.Context(), p.bring(chat.File{Name: "a.txt"}, "hello"))
		if time.Since(start) > 0 || got.Notice != "I could not receive a.txt." {
			t.Errorf("after %v: %+v", time.Since(start), got)
		}
	})
}

// What is uploaded is named and looked at as what is fetched.
func TestSave(t *testing.T) {
	in(t, func(t *testing.T, p *post) {
		at, who := chat.Address{Channel: "web", Chat: "anna"}, chat.Sender{ID: "anna"}
		for range 2 {
			f, err := p.inbox.Save(t.Context(), at, who, "../bomb.png", strings.NewReader(zip))
			if err != nil || f.Type != "application/zip" || f.Name != "../bomb.png" || f.Size != int64(len(zip)) || !strings.HasSuffix(f.Path, "-bomb.png") {
				t.Errorf("%+v, %v", f, err)
			}
		}
		if _, err := p.inbox.Save(t.Context(), at, who, "", &flood{}); !errors.Is(err, workspace.ErrTooBig) {
			t.Errorf("100 MB: %v", err)
		}
		if all := p.all(); len(all) != 2 || !strings.HasPrefix(all[0], chat.Whose(at, who, false).InboxFolder()+"/2000-01-01/") {
			t.Errorf("in the workspace: %q", all)
		}
	})
}
