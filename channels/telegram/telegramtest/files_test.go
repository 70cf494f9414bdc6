package telegramtest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/timetest"
)

// upload does one request with files. Fields and files are pairs.
func upload(t *testing.T, s *telegramtest.Server, method string, fields []string, files ...string) (r reply) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		_ = form.WriteField(fields[i], fields[i+1])
	}
	for i := 0; i < len(files); i += 2 {
		w, _ := form.CreateFormFile(files[i], files[i]+".bin")
		_, _ = io.WriteString(w, files[i+1])
	}
	form.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/bot"+s.Token()+"/"+method, &body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Error(err)
	}
	return r
}

func picture(width, height int) string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		panic(err)
	}
	return b.String()
}

// What Telegram refuses as a file, it refuses.
func TestUploads(t *testing.T) {
	small := picture(10, 10)
	long := strings.Repeat("😀", 513)
	to := []string{"chat_id", "7"}
	media := func(items ...string) []string {
		return append(to, "media", "["+strings.Join(items, ",")+"]")
	}
	item := func(kind, name string) string { return fmt.Sprintf(`{"type":%q,"media":"attach://%s"}`, kind, name) }
	for _, tt := range []struct {
		method string
		fields []string
		files  []string
		want   string // in the refusal; empty: none
	}{
		{"sendPhoto", to, []string{"photo", small}, ""},
		{"sendPhoto", to, nil, "there is no photo in the request"},
		{"sendPhoto", append(to, "photo", small), nil, "there is no photo in the request"},
		{"sendPhoto", to, []string{"photo", "no picture"}, "IMAGE_PROCESS_FAILED"},
		{"sendPhoto", to, []string{"photo", picture(210, 10)}, "PHOTO_INVALID_DIMENSIONS"},
		{"sendPhoto", to, []string{"photo", picture(9000, 1001)}, "PHOTO_INVALID_DIMENSIONS"},
		{"sendPhoto", to, []string{"photo", small + strings.Repeat("x", telegramtest.MaxPhoto)}, "PHOTO_SAVE_FILE_INVALID"},
		{"sendPhoto", append(to, "caption", long), []string{"photo", small}, "caption is too long"},
		{"sendPhoto", append(to, "caption", "<b>x", "parse_mode", "HTML"), []string{"photo", small}, "can't parse entities"},
		{"sendPhoto", []string{"chat_id", "8"}, []string{"photo", small}, "chat not found"},
		{"sendDocument", to, []string{"document", "x"}, ""},
		{"sendDocument", to, []string{"document", ""}, "non-empty"},
		{"sendVoice", to, []string{"voice", strings.Repeat("x", telegramtest.MaxUpload+1)}, "Request Entity Too Large"},
		{"sendAudio", to, []string{"video", "x"}, "there is no audio"},
		{"sendMediaGroup", media(item("photo", "a"), item("video", "b")), []string{"a", small, "b", "x"}, ""},
		{"sendMediaGroup", media(item("document", "a"), item("document", "b")), []string{"a", small, "b", "x"}, ""},
		{"sendMediaGroup", media(item("photo", "a")), []string{"a", small}, "wrong number"},
		{"sendMediaGroup", media(strings.Split(strings.TrimRight(strings.Repeat(item("photo", "a")+"|", 11), "|"), "|")...), []string{"a", small}, "wrong number"},
		{"sendMediaGroup", media(item("photo", "a"), item("document", "b")), []string{"a", small, "b", "x"}, "can't be mixed"},
		{"sendMediaGroup", media(item("audio", "a"), item("video", "b")), []string{"a", small, "b", "x"}, "can't be mixed"},
		{"sendMediaGroup", media(item("voice", "a"), item("voice", "b")), []string{"a", small, "b", "x"}, "type must be"},
		{"sendMediaGroup", media(item("photo", "a"), item("photo", "c")), []string{"a", small}, "no photo"},
		{"sendMediaGroup", append(to, "media", "no"), nil, "can't parse"},
	} {
		timetest.Test(t, func(t *testing.T) {
			s := telegramtest.NewInMemory(telegramtest.Config{})
			defer s.Close()
			s.Say(7, "hello")
			r := upload(t, s, tt.method, tt.fields, tt.files...)
			if r.OK != (tt.want == "") || !strings.Contains(r.Description, tt.want) {
				t.Errorf("%s %.60q %.60q: %+v, want %q", tt.method, tt.fields, tt.files, r, tt.want)
			}
			if n := len(s.Chat(7)); (n == 1) == r.OK {
				t.Errorf("%s: %d messages", tt.method, n)
			}
		})
	}
}

// A file is handed out under its id; the link needs the token.
func TestDownloads(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		s.Post(7, telegramtest.File{Kind: "document", Name: "../x", Data: []byte("bytes")}, "look")
		s.Post(7, telegramtest.File{Kind: "video", Size: telegramtest.MaxDownload + 1}, "")
		var us []struct {
			Message struct {
				Caption         string `json:"caption"`
				Document, Video struct {
					ID string `json:"file_id"`
				}
			}
		}
		if err := json.Unmarshal(call("getUpdates").Result, &us); err != nil || len(us) != 2 || us[0].Message.Caption != "look" {
			t.Fatalf("%v: %+v", err, us)
		}
		if r := call("getFile", "file_id", us[1].Message.Video.ID); !strings.Contains(r.Description, "file is too big") {
			t.Errorf("a big file: %+v", r)
		}
		if r := call("getFile", "file_id", "x"); r.Code != http.StatusBadRequest {
			t.Errorf("no file: %+v", r)
		}
		var f struct {
			Path string `json:"file_path"`
		}
		_ = json.Unmarshal(call("getFile", "file_id", us[0].Message.Document.ID).Result, &f)
		for link, want := range map[string]string{
			"/file/bot" + s.Token() + "/" + f.Path: "bytes", "/file/bot" + s.Token() + "/other": "Not Found", "/file/bot1:x/" + f.Path: "Unauthorized",
		} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+link, nil)
			resp, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if !strings.Contains(string(body), want) {
				t.Errorf("%s: %s", link, body)
			}
		}
	})
}

func button(text, data string) string {
	return fmt.Sprintf(`{"inline_keyboard":[[{"text":%q,"callback_data":%q}]]}`, text, data)
}

func TestButtons(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		s.Say(7, "hello")
		for markup, want := range map[string]string{
			button("yes", "1"): "", button("", "1"): "must be non-empty", button("x", ""): "BUTTON_DATA_INVALID",
			button("x", strings.Repeat("x", 65)): "BUTTON_DATA_INVALID", "[]": "object expected", "{}": "object expected",
		} {
			if r := call("sendMessage", "chat_id", "7", "text", "x", "reply_markup", markup); r.OK != (want == "") || !strings.Contains(r.Description, want) {
				t.Errorf("%s: %+v", markup, r)
			}
		}
		press := s.Press(7, 2, 0)
		if r := call("getUpdates"); strings.Contains(string(r.Result), "callback_query") == false {
			t.Errorf("updates: %s", r.Result)
		}
		if r := call("answerCallbackQuery", "callback_query_id", press); !r.OK {
			t.Errorf("answered: %+v", r)
		}
		late := s.Press(7, 2, 0)
		timetest.Sleep(time.Minute)
		for _, id := range []string{press, late, "x"} {
			if r := call("answerCallbackQuery", "callback_query_id", id); !strings.Contains(r.Description, "query is too old") {
				t.Errorf("answered twice, late or at random: %+v", r)
			}
		}
		if r := call("editMessageText", "chat_id", "7", "message_id", "2", "text", "x", "reply_markup", button("yes", "1")); !strings.Contains(r.Description, "not modified") {
			t.Errorf("the same again: %+v", r)
		}
		if r := call("editMessageText", "chat_id", "7", "message_id", "2", "text", "x"); !r.OK || len(s.Chat(7)[1].Buttons) > 0 {
			t.Errorf("without buttons: %+v", r)
		}
	})
}

func TestReactions(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(t *testing.T, s *telegramtest.Server, call func(string, ...string) reply) {
		s.Say(7, "hello")
		s.Say(-5, "hello")
		s.NoReactions(-5)
		for _, tt := range []struct{ chat, message, reaction, want string }{
			{"7", "1", `[{"type":"emoji","emoji":"👀"}]`, ""}, {"7", "1", `[]`, ""}, {"7", "1", ``, ""},
			{"7", "1", `[{"type":"emoji","emoji":"✍"}]`, ""},
			{"7", "1", `[{"type":"emoji","emoji":"✅"}]`, "REACTION_INVALID"},
			{"7", "1", `[{"type":"emoji","emoji":"👀"},{"type":"emoji","emoji":"👍"}]`, "REACTIONS_TOO_MANY"},
			{"7", "2", `[]`, "message to react not found"}, {"7", "1", `x`, "can't parse"},
			{"-5", "2", `[{"type":"emoji","emoji":"👀"}]`, "REACTION_INVALID"}, {"-5", "2", `[]`, ""},
		} {
			r := call("setMessageReaction", "chat_id", tt.chat, "message_id", tt.message, "reaction", tt.reaction)
			if r.OK != (tt.want == "") || !strings.Contains(r.Description, tt.want) {
				t.Errorf("%+v: %+v", tt, r)
			}
		}
		if got := s.Chat(7)[0].Reactions; len(got) != 4 || got[0] != "👀" || got[3] != "✍" {
			t.Errorf("reactions: %q", got)
		}
	})
}
