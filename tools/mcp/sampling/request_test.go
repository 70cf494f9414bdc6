package sampling

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/llm"
	"parley/tools"
	"parley/tools/mcp"
)

func message(role sdk.Role, content ...sdk.Content) string {
	parts := []string{}
	for _, c := range content {
		text, _ := c.MarshalJSON()
		parts = append(parts, string(text))
	}
	return `{"role":"` + string(role) + `","content":[` + strings.Join(parts, ",") + `]}`
}

func picture(t *testing.T) *sdk.ImageContent {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	return &sdk.ImageContent{MIMEType: "image/png", Data: b.Bytes()}
}

func read(t *testing.T, messages ...string) *mcp.SamplingRequest {
	t.Helper()
	p := new(mcp.SamplingRequest)
	if err := json.Unmarshal([]byte(`{"maxTokens":5,"messages":[`+strings.Join(messages, ",")+`]}`), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// Point by point what models can be told: texts and pictures, of both roles.
func TestRequest(t *testing.T) {
	t.Parallel()
	text := func(text string) *sdk.TextContent { return &sdk.TextContent{Text: text} }
	many := make([]string, maxMessages+1)
	for n := range many {
		many[n] = message("user", text("a"))
	}
	pictures := make([]sdk.Content, maxPictures+1)
	for n := range pictures {
		pictures[n] = picture(t)
	}
	for _, c := range []struct {
		name     string
		messages []string
		want     string // of the error; "" is none
	}{
		{"one", []string{message("user", text("a"))}, ""},
		{"both roles", []string{message("user", text("a")), message("assistant", text("b")), message("user", text("c"), text("d"))}, ""},
		{"picture", []string{message("user", text("what is it?"), picture(t))}, ""},
		{"none", nil, "there are no messages"},
		{"many", many, "more than 100 messages"},
		{"another role", []string{message("system", text("a"))}, `of the role "system"`},
		{"missing", []string{"null"}, "a message is missing"},
		{"sound", []string{message("user", &sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("x")})}, "only texts and pictures"},
		{"picture of the assistant", []string{message("assistant", picture(t))}, "an assistant cannot show pictures"},
		{"broken picture", []string{message("user", &sdk.ImageContent{MIMEType: "image/png", Data: []byte("x")})}, "not a PNG"},
		{"many pictures", []string{message("user", pictures...)}, "5 pictures"},
		{"long", []string{message("user", text(strings.Repeat("x", maxText+1)))}, "bytes of text"},
	} {
		r, err := newRequest(read(t, c.messages...))
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.name, err)
		case c.want == "" && len(r.Messages) != len(c.messages):
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	r, err := newRequest(read(t, message("user", text("a"), text("b"), picture(t)), message("assistant", text("c"))))
	if err != nil || r.Messages[0].Text != "a\n\nb" || len(r.Messages[0].Images) != 1 || r.Messages[1].Role != llm.Assistant {
		t.Errorf("%+v %v", r, err)
	}
	if got := r.shown(); !strings.HasPrefix(got, "user: a\n\nb (image/png, ") || !strings.HasSuffix(got, " bytes)\nassistant: c") {
		t.Errorf("people are shown %q", got)
	}
}

// A model that cannot see is not shown pictures.
func TestPictureForBlindModel(t *testing.T) {
	t.Parallel()
	r, err := newRequest(read(t, message("user", picture(t))))
	if err != nil {
		t.Fatal(err)
	}
	j := &job{request: r}
	if _, err := j.ask(t.Context(), tools.Call{}); err == nil || !strings.Contains(err.Error(), "cannot be shown pictures") {
		t.Error(err)
	}
}
