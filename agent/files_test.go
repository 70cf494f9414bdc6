package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store/mem"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
	"parley/workspace"
)

// photo is a message with files that are still at the network.
func photo(id, text string, names ...string) chat.Message {
	m := message(id, text)
	m.Media = "photo"
	for _, n := range names {
		m.Files = append(m.Files, chat.File{Name: n, Ref: "ref of " + n})
	}
	return m
}

// fetched is what the Hub makes of m: files in the workspace.
func fetched(m chat.Message) chat.Message {
	m.Files = slices.Clone(m.Files)
	for i := range m.Files {
		m.Files[i].Path = "inbox/" + m.Files[i].Name
	}
	return m
}

// lastText returns the last message of the last request, header and all.
func (h *house) lastText() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ms := h.asks[len(h.asks)-1].Messages
	return ms[len(ms)-1].Text
}

// TestFetch: the files of what a turn hears are brought in first, side by side
// and once, also of what joins it; the model is told where they are.
func TestFetch(t *testing.T) {
	var n atomic.Int32
	h := &house{tools: []tools.Tool{slow()}, model: script(calls(call("1", "slow")), words("both"), words("fine"))}
	h.conf = func(c *agent.Config) {
		c.Fetch = func(_ context.Context, m chat.Message) chat.Message {
			n.Add(1)
			time.Sleep(3 * time.Second)
			return fetched(m)
		}
	}
	play(t, h, func(h *house) {
		for i, name := range []string{"a.pdf", "b.pdf"} {
			h.deliver(photo(fmt.Sprint(i), "see "+name, name))
		}
		timetest.Sleep(1500 * time.Millisecond) // an album is whole after 500 or 1000
		h.say("status", "/status")
		synctest.Wait()
		if got := h.said["re:test//1/status"]; !strings.HasPrefix(got, "I am fetching files, for a moment now.") && !strings.HasPrefix(got, "I am fetching files, for a second now.") {
			t.Errorf("status %q", got)
		}
		h.sent = nil
		timetest.Sleep(4 * time.Second) // 3 for the two, and the tool has begun
		h.deliver(photo("3", "and this", "c.png"))
		timetest.Sleep(time.Minute)
		h.want("both")
		if first, second := h.asks[0].Messages, h.asks[1].Messages; len(first) != 2 || !strings.Contains(first[1].Text, ", with the file inbox/b.pdf]\nsee b.pdf") ||
			!strings.Contains(second[len(second)-1].Text, "with a photo, with the file inbox/c.png") {
			t.Errorf("asked %v, then %v", first, second)
		}
		h.say("4", "thanks")
		h.want("fine")
		if n.Load() != 3 {
			t.Errorf("fetched %d times, want 3", n.Load())
		}
	})
}

// TestAlbum: the pictures of an album come one by one and get one answer,
// whether the agent was idle or busy. A voice message does not wait for more.
func TestAlbum(t *testing.T) {
	h := &house{tools: []tools.Tool{slow()}, model: script(words("three"), calls(call("1", "slow")), words("done"), words("heard"))}
	h.conf = func(c *agent.Config) {
		c.Fetch = func(_ context.Context, m chat.Message) chat.Message { return fetched(m) }
	}
	album := func(ids ...string) {
		for _, id := range ids {
			h.deliver(photo(id, "", id+".png"))
			timetest.Sleep(300 * time.Millisecond)
		}
	}
	play(t, h, func(h *house) {
		album("1", "2", "3")
		timetest.Sleep(time.Second)
		h.want("three")
		h.say("4", "use the tool")
		timetest.Sleep(4500 * time.Millisecond) // it ends in the middle of the album
		album("5", "6", "7")
		timetest.Sleep(time.Minute)
		h.want("done")
		for i, want := range map[int]int{0: 3, 2: 6} {
			if got := strings.Count(fmt.Sprint(h.asks[i].Messages), ", with the file inbox/"); got != want {
				t.Errorf("request %d tells of %d pictures, want %d", i, got, want)
			}
		}
		m := photo("8", "", "v.ogg")
		m.Files[0].Voice = true
		h.deliver(m)
		h.want("heard")
	})
}

// TestFetchPanics: a file that nobody can take in ends neither the house nor the turn.
func TestFetchPanics(t *testing.T) {
	h := &house{model: script(words("I cannot see it"))}
	h.conf = func(c *agent.Config) {
		c.Fetch = func(context.Context, chat.Message) chat.Message { panic("a driver's fault") }
	}
	play(t, h, func(h *house) {
		h.deliver(photo("1", "look", "a.png"))
		timetest.Sleep(time.Second)
		h.want("I cannot see it")
		if got := h.asks[0].Messages[0].Text; !strings.Contains(got, "with a file that is not here: a.png") {
			t.Errorf("the model reads %q", got)
		}
	})
}

// TestFetchOnce: what was fetched is in the log, and is not fetched again by the
// turn that goes on after a crash.
func TestFetchOnce(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		n := 0
		dir, said := storetest.TempDir(t), map[string]string{}
		for run := range 2 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said}
			h.conf = func(c *agent.Config) {
				c.Fetch = func(_ context.Context, m chat.Message) chat.Message { n++; return fetched(m) }
			}
			h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
				if run == 0 {
					m.left.Store(0)
					return llm.Message{}, errors.New("killed")
				}
				return words(r.Messages[0].Text), nil
			}
			h.start()
			if run == 0 {
				go h.pool.Deliver(t.Context(), photo("1", "see", "a.pdf")) //nolint:errcheck // the process dies over it
			}
			timetest.Sleep(time.Minute)
			synctest.Wait()
			h.stop()
			m.Close()
		}
		if got := said["re:test//1/1"]; n != 1 || !strings.Contains(got, "with the file inbox/a.pdf") {
			t.Errorf("fetched %d times, and said %q", n, got)
		}
	})
}

// TestStopFetching: /stop ends a download, and the message is heard without its files.
func TestStopFetching(t *testing.T) {
	h := &house{model: script(words("fine"))}
	h.conf = func(c *agent.Config) {
		c.Fetch = func(ctx context.Context, m chat.Message) chat.Message {
			<-ctx.Done()
			return m
		}
	}
	play(t, h, func(h *house) {
		h.deliver(photo("1", "see", "a.pdf"))
		timetest.Sleep(time.Second)
		h.say("2", "/stop")
		h.want("(Stopped.)")
		h.say("3", "well?")
		h.want("fine")
		if got := h.asks[0].Messages[0].Text; !strings.Contains(got, "with a file that is not here: a.pdf]\nsee") {
			t.Errorf("asked %q", got)
		}
	})
}

// TestShutdownFetching is P16: a download that does not end is begun anew at the next start.
func TestShutdownFetching(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		for run := range 2 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said, model: script(words("fine"))}
			h.conf = func(c *agent.Config) {
				c.Fetch = func(ctx context.Context, m chat.Message) chat.Message {
					if run == 0 {
						<-ctx.Done()
						return m
					}
					return fetched(m)
				}
			}
			h.start()
			if run == 0 {
				h.deliver(photo("1", "see", "a.pdf"))
			}
			timetest.Sleep(time.Second)
			h.stop()
			m.Close()
			if run == 1 && (said["re:test//1/1"] != "fine" || !strings.Contains(h.lastText(), "inbox/a.pdf")) {
				t.Errorf("said %q", said)
			}
		}
	})
}

// TestNotice: the person is told what could not be taken in, once: alone when
// there is nothing else to answer, and else before the answer.
func TestNotice(t *testing.T) {
	notice := "I could not listen to your voice message."
	h := &house{model: script(words("a"), words("b"), words("c"))}
	var shown collected[string]
	h.live = func(s string) { shown.add(s) }
	h.conf = func(c *agent.Config) {
		c.Fetch = func(_ context.Context, m chat.Message) chat.Message {
			m = fetched(m)
			m.Notice, m.Media = notice, "voice, not listened to"
			return m
		}
	}
	voice := func(id, text string, more ...chat.File) chat.Message {
		m := photo(id, text, "v.ogg")
		m.Files[0].Voice = true
		m.Files = append(m.Files, more...)
		return m
	}
	play(t, h, func(h *house) {
		h.deliver(voice("1", ""))
		h.want(notice)
		if len(h.asks) != 0 {
			t.Errorf("asked %v", h.asks)
		}
		h.deliver(voice("2", "listen to this"))
		h.want(notice + "\n\na")
		if got := h.lastText(); !strings.Contains(got, "with a voice, not listened to") || strings.Contains(got, notice) {
			t.Errorf("the model reads %q", got)
		}
		h.deliver(voice("3", "", chat.File{Name: "a.pdf", Ref: "r"}))
		timetest.Sleep(time.Second) // for an album
		h.want(notice + "\n\nb")
		for _, id := range []string{"4", "5"} {
			m := voice(id, "")
			m.Time = m.Time.Add(-time.Minute)
			h.deliver(m)
		}
		timetest.Sleep(time.Second)
		h.want(notice)
		h.say("6", "/retry") // then the model is to say something
		h.want("c")
	})
}

// TestBegun: each turn is told of, with how it ended, and its models get the context.
func TestBegun(t *testing.T) {
	type key struct{}
	var told collected[string]
	h := &house{model: func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		told.add(fmt.Sprint("model ", ctx.Value(key{})))
		switch spoken(r, 1) {
		case "user fail":
			return llm.Message{}, &llm.Error{Kind: llm.Auth, Err: errors.New("no key")}
		case "user burst":
			panic("oh")
		}
		return words("ok"), nil
	}}
	h.conf = func(c *agent.Config) {
		c.Begun = func(ctx context.Context, id chat.SessionID, m chat.Message) (context.Context, func(string)) {
			return context.WithValue(ctx, key{}, m.ID), func(outcome string) {
				told.add(fmt.Sprintf("%s %s %s", id, m.ID, outcome))
			}
		}
	}
	play(t, h, func(h *house) {
		for i, text := range []string{"hi", "fail", "burst"} {
			h.say(fmt.Sprint(i), text)
			synctest.Wait()
		}
		if got, want := strings.Join(told.values(), "|"), "model 0|test:1 0 answered|model 1|test:1 1 failed|model 2|test:1 2 failed"; got != want {
			t.Errorf("told %s\nwant %s", got, want)
		}
	})
}

// desk is a workspace with pictures.
func desk(t *testing.T, names ...string) *workspace.Workspace {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if err := ws.Names().WriteFile(n, b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	return ws
}

// sees gives the house models with eyes and a workspace.
func sees(h *house, ws *workspace.Workspace, window int) {
	h.conf = func(c *agent.Config) { c.Workspace = ws }
	h.set = func(s *agent.Settings) {
		for name, m := range s.Models {
			m.Vision, m.Window = name == "main", window
			s.Models[name] = m
		}
	}
}

func picture(id, text string, paths ...string) chat.Message {
	m := message(id, text)
	for _, p := range paths {
		f := chat.File{Path: p}
		if strings.HasSuffix(p, ".png") {
			f.Type = "image/png"
		}
		m.Files = append(m.Files, f)
	}
	return m
}

// TestPictures: a model with eyes is shown what really is a picture, and is
// told of the rest; one without is told of all.
func TestPictures(t *testing.T) {
	ws := desk(t, "a.png", "b.png")
	if err := ws.Names().WriteFile("zip.png", []byte("PK\x03\x04 a bomb")); err != nil {
		t.Fatal(err)
	}
	h := &house{model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) { return words("ok"), nil }}
	sees(h, ws, 20_000)
	play(t, h, func(h *house) {
		h.deliver(picture("1", "look", "a.png", "b.png", "zip.png", "../x.png", "notes.txt"))
		synctest.Wait()
		m := h.asks[0].Messages[0]
		if len(m.Images) != 2 || m.Images[0].Type != "image/png" || !strings.Contains(m.Text, "with the file a.png") || !strings.Contains(m.Text, ", with 2 pictures that you cannot see]\nlook") {
			t.Errorf("shown %d, told %q", len(m.Images), m.Text)
		}
		h.say("2", "/model other")
		h.say("3", "and now?")
		synctest.Wait()
		m = h.asks[1].Messages[0]
		if len(m.Images) != 0 || !strings.Contains(m.Text, ", with 4 pictures that you cannot see]\nlook") {
			t.Errorf("without eyes: shown %d, told %q", len(m.Images), m.Text)
		}
	})
}

// TestPicturesAreBounded: the latest 8 at most, and the beginning of the
// requests stays as it is but for every fifth picture.
func TestPicturesAreBounded(t *testing.T) {
	h := &house{model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) { return words("ok"), nil }}
	sees(h, desk(t, "a.png"), 200_000)
	play(t, h, func(h *house) {
		const n = 24
		for i := range n {
			h.deliver(picture(fmt.Sprint(i), "look", "a.png"))
			synctest.Wait()
		}
		changes := 0
		for i, r := range h.asks {
			shown := 0
			for _, m := range r.Messages {
				shown += len(m.Images)
			}
			if shown > 8 || shown < min(i+1, 4) || len(r.Messages[len(r.Messages)-1].Images) != 1 {
				t.Errorf("request %d shows %d pictures", i, shown)
			}
			if i > 0 && fmt.Sprint(h.asks[i-1].Messages) != fmt.Sprint(r.Messages[:len(h.asks[i-1].Messages)]) {
				changes++
			}
		}
		if changes > n/5 {
			t.Errorf("the beginning changed %d times", changes)
		}
	})
}

// TestPicturesInHand: what all requests under way show together is bounded. Who
// finds no room waits for it, and can be stopped meanwhile; words wait for nobody.
func TestPicturesInHand(t *testing.T) {
	ws := desk(t, "small.png")
	small, err := ws.Names().ReadFile("small.png")
	if err == nil {
		err = ws.Names().WriteFile("big.png", append(small, make([]byte, 5<<20-len(small))...))
	}
	if err != nil {
		t.Fatal(err)
	}
	var inHand, most, requests atomic.Int64
	h := &house{}
	h.model = func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		h.mu.Lock()
		h.asks = nil
		h.mu.Unlock()
		bytes := 0
		for _, m := range r.Messages {
			for _, p := range m.Images {
				bytes += len(p.Data)
			}
		}
		if bytes == 0 {
			return words("heard you"), nil
		}
		requests.Add(1)
		most.Store(max(most.Load(), inHand.Add(int64(bytes))))
		defer inHand.Add(-int64(bytes))
		select {
		case <-ctx.Done():
			return llm.Message{}, ctx.Err()
		case <-time.After(time.Minute):
			return words("seen"), nil
		}
	}
	sees(h, ws, 200_000)
	play(t, h, func(h *house) {
		look := func(c string) {
			m := picture("look", "look", "big.png", "big.png", "big.png", "big.png")
			m.At.Chat = c
			h.deliver(m)
			synctest.Wait()
		}
		for i := range 8 {
			look(fmt.Sprint(i))
		}
		if n, most := requests.Load(), most.Load(); n != 3 || most > 64<<20 {
			t.Errorf("%d requests with %d bytes of pictures at once", n, most)
		}
		h.deliver(at("words", "1", "hello"))
		h.want("heard you")
		h.deliver(at("7", "status", "/status"))
		synctest.Wait()
		if got := h.sent[0]; !strings.HasPrefix(got, "I am waiting for") {
			t.Errorf("/status of who waits says %q", got)
		}
		h.sent = nil
		h.deliver(at("7", "stop", "/stop"))
		h.want("(Stopped.)")
		timetest.Sleep(5 * time.Minute)
		h.want("seen", "seen", "seen", "seen", "seen", "seen", "seen")
		if n, most := requests.Load(), most.Load(); n != 7 || most > 64<<20 {
			t.Errorf("%d requests with %d bytes of pictures at once", n, most)
		}
	})
}

// TestPicturesFit: pictures count, and give way to words when the window is small.
func TestPicturesFit(t *testing.T) {
	h := &house{model: func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		n := 0
		for _, m := range r.Messages {
			n += 1000*len(m.Images) + len(m.Text)/4
		}
		if n > 2000 {
			return llm.Message{}, &llm.Error{Kind: llm.TooLong, Err: errors.New("too long")}
		}
		return words("ok"), nil
	}}
	sees(h, desk(t, "a.png"), 3200)
	play(t, h, func(h *house) {
		for i := range 5 {
			h.deliver(picture(fmt.Sprint(i), "look", "a.png"))
			h.want("ok")
		}
		h.deliver(picture("9", "look", "a.png", "a.png", "a.png", "a.png"))
		h.want("ok")
	})
}

// TestRefusedPictures is P25: a provider that refuses pictures is asked without
// them, and not shown the same ones again, also after a restart.
func TestRefusedPictures(t *testing.T) {
	ws := desk(t, "a.png")
	timetest.Test(t, func(t *testing.T) {
		refused, s := 0, mem.New()
		for run := range 2 {
			h := &house{t: t, store: s}
			h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
				for _, m := range r.Messages {
					if len(m.Images) > 0 {
						refused++
						return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Status: 400, Err: errors.New("could not process image")}
					}
				}
				return words("ok"), nil
			}
			sees(h, ws, 20_000)
			h.start()
			if run == 0 {
				h.deliver(picture("1", "look", "a.png"))
				h.want("ok")
			}
			h.say(fmt.Sprint("again", run), "and?")
			h.want("ok")
			if got := h.asks[len(h.asks)-1].Messages[0].Text; !strings.Contains(got, "with a picture that you cannot see") {
				t.Errorf("the model reads %q", got)
			}
			h.stop()
		}
		if refused != 1 {
			t.Errorf("refused %d times", refused)
		}
	})
}

// TestBadRequestStays: a request that is refused with and without its pictures
// keeps them.
func TestBadRequestStays(t *testing.T) {
	n := 0
	h := &house{model: func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if n++; n <= 2 {
			return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Status: 400, Err: errors.New("no such model")}
		}
		return words(fmt.Sprint(len(r.Messages[0].Images), " shown")), nil
	}}
	sees(h, desk(t, "a.png"), 20_000)
	play(t, h, func(h *house) {
		h.deliver(picture("1", "look", "a.png"))
		h.want("The model did not accept the request; whoever runs me finds the reason in the log.")
		h.say("2", "and now?")
		h.want("1 shown")
	})
}
