package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/tools/network/networktest"
)

// TestConfigPage: an owner edits the config of the real program. A broken text is refused with its place, and the file
// stays; a good one is saved and followed; what waits for a restart is said; an earlier text is put back; what was
// changed meanwhile stays; nobody else gets in; values of the environment and the file are in no log (R-S6).
func TestConfigPage(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	const token = "an-administrators-Token-of-the-file-1f3a"
	w.more["http"] = map[string]any{"listen": networktest.FreeAddress(t), "adminToken": token}
	w.more["log"] = map[string]any{"level": "info"}
	const argument, variable = "argument-Of-a-server-8d9e", "variable-Of-a-server-6f7a"
	w.more["tools"] = map[string]any{"mcpServers": map[string]any{"x": map[string]any{
		"command": "x", "args": []string{"--api-key", argument}, "env": map[string]any{"PLACE": variable}, "enabled": false,
	}}}
	w.start()
	owner := w.visit()
	file := filepath.Join(w.dir, "config.json")
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	do := func(method, path string, say any, want int, contains string) string {
		t.Helper()
		status, body := owner.do(method, path, say)
		if status != want || !strings.Contains(body, contains) {
			t.Fatalf("%s %s: %d %s, want %d %s", method, path, status, body, want, contains)
		}
		return body
	}
	type stated struct {
		Text, Sum, Locked string
		Versions          []struct{ ID string }
	}
	state := func() (s stated) {
		t.Helper()
		if err := json.Unmarshal([]byte(do("GET", "/api/config", nil, 200, `"found":true`)), &s); err != nil || s.Locked != "" {
			t.Fatalf("%+v, %v", s, err)
		}
		return s
	}
	first, original := state(), read()
	if !strings.Contains(original, `"`+token+`"`) || !strings.Contains(first.Text, `"adminToken":"••••1f3a #`) {
		t.Fatalf("the page shows %s", first.Text)
	}
	const secret = "an-unheard-of-secret-4711"
	broken := "{\n  \"owners\": \"me\",\n  \"http\": {\"adminToken\": \"" + secret + "\"},\n  \"modles\": {}\n}"
	body := do("POST", "/api/config/check", map[string]any{"text": broken}, 200, `{"line":2,"column":13,"text":"owners: is text, must be a list`)
	if !strings.Contains(body, `"line":4,"column":3,"text":"modles: unknown key; allowed: `) {
		t.Errorf("the faults are %s", body)
	}
	do("POST", "/api/config", map[string]any{"base": first.Sum, "text": broken}, http.StatusBadRequest, "nothing was saved: line 2, column 13: owners")
	if read() != original {
		t.Fatal("a broken text was saved")
	}
	good := strings.Replace(first.Text, `"info"`, `"debug"`, 1)
	if good == first.Text {
		t.Fatalf("no level in %s", first.Text)
	}
	good = regexp.MustCompile(`"timezone":"[^"]*"`).ReplaceAllString(good, `"timezone":"Europe/Lisbon"`)
	do("POST", "/api/config/check", map[string]any{"text": good}, 200, `"restart":["timezone"]`)
	if read() != original {
		t.Fatal("a check has changed the file")
	}
	do("POST", "/api/config", map[string]any{"base": first.Sum, "text": good}, 200, `"changed":["log.level"],"restart":["timezone"]`)
	masked := regexp.MustCompile(`"••••[^"]*"`)
	if shown := state().Text; shown != good || masked.ReplaceAllString(read(), "") != read() || !strings.Contains(read(), `"`+token+`"`) {
		t.Fatalf("the file says %s, and is shown as %s", read(), shown)
	}
	w.logs(`msg="config reloaded" changed=log.level`, 1)
	do("POST", "/api/config", map[string]any{"base": first.Sum, "text": first.Text}, http.StatusConflict, "changed in the meantime")
	now := state()
	if len(now.Versions) != 1 {
		t.Fatalf("%+v", now.Versions)
	}
	seen := do("GET", "/api/config/versions/"+now.Versions[0].ID, nil, 200, `"text":`)
	const another = "Another-administrators-Token-2b4c"
	other := strings.Replace(now.Text, masked.FindString(now.Text[strings.Index(now.Text, `"adminToken":`):]), `"`+another+`"`, 1)
	seen += do("POST", "/api/config/check", map[string]any{"text": other}, 200, `••••2b4c #`)
	do("POST", "/api/config", map[string]any{"base": now.Sum, "text": other}, 200, `"http.adminToken"`)
	if !strings.Contains(read(), `"`+another+`"`) {
		t.Errorf("the file says %s", read())
	}
	now = state()
	do("POST", "/api/config", map[string]any{"base": now.Sum, "text": first.Text}, http.StatusBadRequest, "the secret that stood here is not in the file any more")
	do("POST", "/api/config", map[string]any{"base": now.Sum, "text": strings.Replace(good, masked.FindString(good[strings.Index(good, `"adminToken":`):]), `"`+token+`"`, 1)}, 200, `"restart":`)
	now = state()
	seen += do("GET", "/owner/config", nil, 200, "The file has secrets in it")
	kept, err := filepath.Glob(filepath.Join(w.dir, "config-history", "*"))
	if err != nil || len(kept) < 3 {
		t.Fatalf("%q, %v", kept, err)
	}
	for _, name := range kept {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seen += string(text)
	}
	do("GET", "/api/config/versions/..%2F..%2Fconfig.json", nil, 404, "not found")
	do("GET", "/owner/config?version="+now.Versions[0].ID, nil, 200, "This is an earlier text")
	do("POST", "/api/config", map[string]any{"base": now.Sum, "text": first.Text}, 200, `"changed":["log.level"]`)
	w.logs(`msg="config reloaded" changed=log.level`, 2)
	seen += do("GET", "/api/audit", nil, 200, "config.json saved on the owner's page: log.level, timezone")
	seen += first.Text + now.Text
	if says := read(); !strings.Contains(says, `"`+argument+`"`) || !strings.Contains(says, `"`+variable+`"`) {
		t.Errorf("the file has lost secrets of a server: %s", says)
	}
	for _, secret := range []string{token, another, argument, variable} {
		if strings.Contains(seen, secret) {
			t.Errorf("%s is shown or kept", secret)
		}
	}

	guest := w.invite("anna")
	for method, path := range map[string]string{"GET": "/api/config", "POST": "/api/config"} {
		if status, _ := guest.do(method, path, map[string]any{"text": "{}"}); status != http.StatusNotFound {
			t.Errorf("a guest's %s %s: %d", method, path, status)
		}
	}
	if log, _ := w.log.next(); strings.Contains(log, secret) || strings.Contains(log, token) || strings.Contains(log, another) {
		t.Error("the log has what was typed")
	}
}
