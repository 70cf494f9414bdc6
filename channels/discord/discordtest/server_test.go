package discordtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"parley/channels/discord/discordtest"
)

func ask(t *testing.T, s *discordtest.Server, method, path, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bot "+s.Token())
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	_ = json.Unmarshal(bytes.TrimSpace(raw), &out)
	return resp.StatusCode, out
}

// The Server refuses what Discord refuses, with its codes.
func TestStrict(t *testing.T) {
	s := discordtest.NewServer(discordtest.Config{})
	defer s.Close()
	room := s.DM("7")
	said := s.Say(room, "7", "Ann", "hello")
	long := strings.Repeat("ü", 2001)
	for _, c := range []struct {
		method, path, body string
		status, code       int
	}{
		{"POST", "/channels/" + room + "/messages", `{"content":"` + long + `"}`, 400, 50035},
		{"POST", "/channels/" + room + "/messages", `{"content":"` + long[:4000] + `"}`, 200, 0},
		{"POST", "/channels/" + room + "/messages", `{"content":" \n"}`, 400, 50006},
		{"POST", "/channels/" + room + "/messages", `{"content":"a","nonce":"12345678901234567890123456"}`, 400, 50035},
		{"POST", "/channels/" + room + "/messages", `{"content":"a","message_reference":{"message_id":"5"}}`, 400, 50035},
		{"POST", "/channels/" + room + "/messages", `{"content":"a","message_reference":{"message_id":"5","fail_if_not_exists":false}}`, 200, 0},
		{"POST", "/channels/" + room + "/messages", `{"content":"a","components":[{"components":[]}]}`, 400, 50035},
		{"POST", "/channels/" + room + "/messages", `{`, 400, 50109},
		{"POST", "/channels/1/messages", `{"content":"a"}`, 404, 10003},
		{"PATCH", "/channels/" + room + "/messages/" + said, `{"content":"a"}`, 403, 50005},
		{"PATCH", "/channels/" + room + "/messages/5", `{"content":"a"}`, 404, 10008},
		{"DELETE", "/channels/" + room + "/messages/" + said, "", 403, 50013},
		{"GET", "/channels/" + room + "/messages?limit=101", "", 400, 50035},
		{"PUT", "/channels/" + room + "/messages/" + said + "/reactions/%F0%9F%91%80/@me", "", 204, 0},
		{"PUT", "/applications/100/commands", `[{"name":"Upper","description":"x"}]`, 400, 50035},
		{"POST", "/interactions/1/x/callback", `{"type":6}`, 404, 10062},
		{"GET", "/nowhere", "", 404, 0},
	} {
		status, out := ask(t, s, c.method, c.path, c.body)
		if code, _ := out["code"].(float64); status != c.status || c.code != 0 && int(code) != c.code {
			t.Errorf("%s %s %.60s: %d %v, want %d %d", c.method, c.path, c.body, status, out["code"], c.status, c.code)
		}
	}
	before := len(s.Messages(room))
	for range 2 {
		ask(t, s, "POST", "/channels/"+room+"/messages", `{"content":"once","nonce":"n","enforce_nonce":true}`)
	}
	if n := len(s.Messages(room)); n != before+1 {
		t.Errorf("a nonce was taken %d times", n-before)
	}
	s.Refuse(room, 50007)
	if status, _ := ask(t, s, "POST", "/channels/"+room+"/messages", `{"content":"a"}`); status != 403 {
		t.Error(status)
	}
}

// A page of history holds the oldest messages after one, newest first.
func TestHistory(t *testing.T) {
	s := discordtest.NewServer(discordtest.Config{Limits: true})
	defer s.Close()
	room := s.DM("7")
	var ids []string
	for i := range 9 {
		ids = append(ids, s.Say(room, "7", "", fmt.Sprint(i)))
	}
	get := func() (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/channels/"+room+"/messages?limit=3&after="+ids[1], nil)
		req.Header.Set("Authorization", "Bot "+s.Token())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var page []struct {
			Text string `json:"content"`
		}
		_ = json.NewDecoder(resp.Body).Decode(&page)
		text := ""
		for _, m := range page {
			text += m.Text
		}
		return resp.StatusCode, text
	}
	for range 5 {
		if status, text := get(); status != 200 || text != "432" {
			t.Error(status, text)
		}
	}
	if status, _ := get(); status != 429 {
		t.Errorf("the sixth within five seconds is answered %d", status)
	}
}

// dial speaks with the gateway by hand and returns what it says, to the first packet
// that holds last or to the end of the connection.
func dial(t *testing.T, s *discordtest.Server, last string, says ...string) (packets []string, code int) {
	ws, resp, err := websocket.DefaultDialer.DialContext(t.Context(), s.GatewayURL+"/?v=9&encoding=json", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	defer ws.Close()
	for _, line := range says {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	_ = ws.SetReadDeadline(time.Now().Add(time.Minute))
	for last == "" || len(packets) == 0 || !strings.Contains(packets[len(packets)-1], last) {
		_, raw, err := ws.ReadMessage()
		if end, ok := errors.AsType[*websocket.CloseError](err); ok {
			return packets, end.Code
		}
		if err != nil {
			return packets, 0
		}
		packets = append(packets, string(raw))
	}
	return packets, 0
}

func TestGateway(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   discordtest.Config
		says  string
		code  int
		holds string
	}{
		"wrong token":      {says: `{"op":2,"d":{"token":"x","intents":1}}`, code: 4004},
		"no such intent":   {says: `{"op":2,"d":{"token":"T","intents":67108864}}`, code: 4013},
		"not permitted":    {cfg: discordtest.Config{Blind: true}, says: `{"op":2,"d":{"token":"T","intents":32768}}`, code: 4014},
		"permitted":        {says: `{"op":2,"d":{"token":"T","intents":32768}}`, holds: `"READY"`},
		"unknown session":  {says: `{"op":6,"d":{"token":"T","session_id":"x","seq":1}}`, holds: `{"op":9,"d":false}`},
		"nonsense":         {says: `{`, code: 4002},
		"unknown op":       {says: `{"op":99}`, code: 4001},
		"heartbeat":        {says: `{"op":1,"d":null}`, holds: `{"op":11,"d":null}`},
		"nothing but time": {holds: `"heartbeat_interval":41250`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := discordtest.NewServer(c.cfg)
			defer s.Close()
			var says []string
			if c.says != "" {
				says = append(says, strings.Replace(c.says, `"T"`, `"Bot `+s.Token()+`"`, 1))
			}
			packets, code := dial(t, s, c.holds, says...)
			if code != c.code || !strings.Contains(strings.Join(packets, "\n"), c.holds) {
				t.Errorf("%d, %q", code, packets)
			}
		})
	}
	t.Run("a command that nobody answers", func(t *testing.T) {
		t.Parallel()
		s := discordtest.NewServer(discordtest.Config{Patience: time.Millisecond})
		defer s.Close()
		id := s.Command(s.DM("7"), "7", "new", "")
		if err := s.Wait(t.Context(), func(v discordtest.View) bool { return v.Interaction(id).Late }); err != nil {
			t.Fatal(err)
		}
		if status, _ := ask(t, s, "POST", "/interactions/"+id+"/secret-of-the-interaction/callback", `{"type":6}`); status != 404 {
			t.Error(status)
		}
	})
}

// A RESUME brings what came after its number, if all of it is still kept: the
// last events, and none that a heartbeat has confirmed. A server is described
// with the last message of each channel and thread, and private chats nowhere.
func TestResume(t *testing.T) {
	t.Parallel()
	s := discordtest.NewServer(discordtest.Config{Buffer: 3})
	defer s.Close()
	channel := s.Channel("900")
	thread := s.Thread(channel)
	s.Say(channel, "8", "", "before")
	last := s.Say(thread, "8", "", "before")
	s.Say(s.DM("9"), "9", "", "before")
	token := `"token":"Bot ` + s.Token() + `"`
	packets, _ := dial(t, s, "GUILD_CREATE", `{"op":2,"d":{`+token+`,"intents":37377}}`) // READY is 1, the server 2
	all := strings.Join(packets, "\n")
	if !strings.Contains(all, `"last_message_id":"`+last+`"`) || strings.Contains(all, s.DM("9")) {
		t.Errorf("the session begins with %s", all)
	}
	for i := range 4 { // 3 to 6
		s.Say(s.DM("7"), "7", "", fmt.Sprint("message ", i+3))
	}
	resume := func(seq int) string {
		packets, _ := dial(t, s, `{"op":11,`, fmt.Sprintf(`{"op":6,"d":{%s,"session_id":"session1","seq":%d}}`, token, seq), `{"op":1,"d":5}`)
		return strings.Join(packets, "\n")
	}
	got := resume(4)
	if strings.Contains(got, "message 4") || !strings.Contains(got, "message 5") || !strings.Contains(got, "message 6") || !strings.Contains(got, "RESUMED") {
		t.Errorf("resumed with %s", got)
	}
	if got := resume(4); !strings.Contains(got, `{"op":9,"d":false}`) { // 5 was confirmed
		t.Errorf("resumed with %s", got)
	}
}
