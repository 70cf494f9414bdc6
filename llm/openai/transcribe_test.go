package openai_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/llm/openai"
)

func transcriber(t *testing.T, url string) *openai.Transcriber {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return openai.NewTranscriber(openai.Config{BaseURL: url, APIKey: key, Model: "whisper-1", Transport: tr}, "de")
}

func TestTranscribe(t *testing.T) {
	s := serve(t, llmtest.Reply{})
	s.Key = key
	s.Hear = func(_ context.Context, sp llmtest.Speech) llmtest.Reply {
		return llmtest.Reply{Text: " " + sp.Model + " " + sp.Language + " heard " + string(sp.Audio) + "\n"}
	}
	for name, file := range map[string]string{
		"voice.oga": "voice.ogg", "a.MP3": "voice.mp3", "x.m4a": "voice.m4a", "": "voice.ogg",
		"../../etc/\"pass\nwd\".wav": "voice.wav", "note.opus": "voice.ogg",
	} {
		text, err := transcriber(t, s.URL()).Transcribe(t.Context(), name, strings.NewReader("beeps"))
		heard := s.Speeches()
		if last := heard[len(heard)-1]; err != nil || text != "whisper-1 de heard beeps" || last.Name != file {
			t.Errorf("%q: got %q, %v; sent as %q, %s", name, text, err, last.Name, last.Refused)
		}
	}
}

// P11, R-S26: each failure has a kind, and no error contains the key.
func TestTranscribeFails(t *testing.T) {
	for name, c := range map[string]struct {
		reply llmtest.Reply
		audio string
		kind  llm.Kind
	}{
		"no audio":    {llmtest.Reply{}, "", llm.BadRequest},
		"key":         {llmtest.Reply{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + key + `"}}`}, "a", llm.Auth},
		"limited":     {llmtest.Reply{Status: 429, Body: "slow down", Header: map[string]string{"Retry-After": "7"}}, "a", llm.RateLimited},
		"broken down": {llmtest.Reply{Status: 503, Body: "<html>"}, "a", llm.Overloaded},
		"elsewhere":   {llmtest.Reply{Status: 302, Header: map[string]string{"Location": "http://127.0.0.1:1/"}, Body: "x"}, "a", llm.BadRequest},
		"no JSON":     {llmtest.Reply{Body: "<html>" + key}, "a", llm.Cut},
	} {
		s := serve(t, llmtest.Reply{})
		s.Hear = func(context.Context, llmtest.Speech) llmtest.Reply { return c.reply }
		text, err := transcriber(t, s.URL()).Transcribe(t.Context(), "a.ogg", strings.NewReader(c.audio))
		var e *llm.Error
		if text != "" || !errors.As(err, &e) || e.Kind != c.kind || strings.Contains(err.Error(), key) {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
		if name == "limited" && e.After != 7*time.Second {
			t.Errorf("to wait %v", e.After)
		}
	}
	var e *llm.Error
	if _, err := transcriber(t, "http://127.0.0.1:1/v1").Transcribe(t.Context(), "a", strings.NewReader("a")); !errors.As(err, &e) || e.Kind != llm.Unreachable {
		t.Errorf("nobody there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, llmtest.Reply{})
	s.Hear = func(ctx context.Context, _ llmtest.Speech) llmtest.Reply {
		cancel()
		<-ctx.Done()
		return llmtest.Reply{}
	}
	if _, err := transcriber(t, s.URL()).Transcribe(ctx, "a", strings.NewReader("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// pixel is a PNG of one pixel.
const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55" +
	"\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01\x48\xaf\xa4\x71\x00\x00\x00\x00IEND\xaeB`\x82"

func TestImages(t *testing.T) {
	picture, err := llm.NewImage([]byte(pixel))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(blind bool, images ...llm.Image) (llmtest.Message, error) {
		s := serve(t, llmtest.Reply{Text: "ok"})
		m := model(t, s.URL(), func(c *openai.Config) { c.Vision = new(!blind) })
		_, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "look", Images: images}}}, nil)
		ms := s.Requests()[0].Messages
		if len(ms) == 0 {
			return llmtest.Message{}, err
		}
		return ms[len(ms)-1], err
	}
	got, err := ask(false, picture, picture)
	if err != nil || got.Content != "look" || len(got.Images) != 2 || got.Images[0].Type != "image/png" || string(got.Images[1].Data) != pixel {
		t.Errorf("asked %+v, %v", got, err)
	}
	if got, err = ask(true, picture); err != nil || got.Content != "look" || got.Images != nil {
		t.Errorf("a blind model was asked %+v, %v", got, err)
	}
	for name, bad := range map[string]llm.Image{
		"no picture": {Type: "image/png", Data: []byte("<html>")}, "of another type": {Type: "image/jpeg", Data: []byte(pixel)},
	} {
		var e *llm.Error
		if _, err := ask(false, bad); !errors.As(err, &e) || e.Kind != llm.BadRequest || e.Status != 400 {
			t.Errorf("%s: %v, want a 400", name, err)
		}
	}
}

func TestSees(t *testing.T) {
	for _, name := range strings.Fields(`gpt-4o gpt-4o-mini openai/gpt-4.1-nano gpt-5 gpt-5-mini gpt-6-astra gpt-4-turbo chatgpt-4o-latest o1 o3 o4-mini
		claude-3-5-sonnet-latest anthropic/claude-sonnet-4.5 claude-opus-5 google/gemini-2.5-flash gemini-3-pro gemma-3-27b-it gemma3 gemma3:12b
		llama3.2-vision meta-llama/llama-4-maverick qwen/qwen2.5-vl-72b-instruct qwen3-vl:8b llava:13b pixtral-12b-2409 glm-4.5v grok-4 internvl3`) {
		if !openai.Sees(name) {
			t.Errorf("%s is thought to be blind", name)
		}
	}
	for _, name := range strings.Fields(`gpt-3.5-turbo gpt-4 gpt-oss-120b openai/gpt-oss-20b o3-mini o1-mini deepseek-chat deepseek/deepseek-r1 llama3.1 llama-3.3-70b
		qwen3-32b mistral-7b codestral gemma3:1b gemma2 kimi-k2 glm-4.6 phi-4 whisper-1 gpt-4o-transcribe gpt-4o-audio-preview text-embedding-3-small`) {
		if openai.Sees(name) {
			t.Errorf("%s is thought to see", name)
		}
	}
}
