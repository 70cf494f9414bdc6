package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/llm/llmtest"
)

// toolLister is a model that says which of the tools it knows are offered, and
// whether it was told of some that are off.
func toolLister(_ context.Context, r llmtest.Request) llmtest.Reply {
	known := append(toFind(r), names(r)...)
	isNot := func(name string) bool { return !slices.Contains(known, name) }
	offered := slices.DeleteFunc([]string{"calculator", "read_file", "web_search"}, isNot)
	told := ""
	for _, m := range r.Messages {
		if _, notice, ok := strings.Cut(m.Content, "tools off here: "); ok && m.Role == "system" {
			told, _, _ = strings.Cut(notice, ".")
		}
	}
	return llmtest.Reply{Text: fmt.Sprintf("%s; off: %s; %s", strings.Join(offered, " "), told, spokenLast(r))}
}

// B-070 to B-074: what the owner switches off on the page is gone from the next turn
// on, for whom it is for, and the model is told; also after a kill. What the config
// keeps back stays back.
func TestB073Policy(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, toolLister)
	w.more["tools"] = map[string]any{"rules": map[string]any{"crawler": "owners"}}
	w.start()
	n := 0
	says := func(who int64, want string) {
		t.Helper()
		n++
		w.tg.Say(who, fmt.Sprintf("number %d", n))
		w.says(who, fmt.Sprintf("%s; number %d", want, n))
	}
	owner := w.visit()
	set := func(status int, body string) string {
		t.Helper()
		var v map[string]any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		got, answer := owner.do("POST", "/api/admin/policy", v)
		if got != status {
			t.Fatalf("%s: %d %s", body, got, answer)
		}
		return answer
	}
	says(person, "calculator read_file web_search; off: ")
	says(guest, "calculator read_file; off: ")
	set(http.StatusOK, `{"target_type":"role","target_value":"user","config":{"forced_category_states":{"data":false,"crawler":true}}}`)
	says(guest, "read_file; off: data")
	says(person, "calculator read_file web_search; off: ")
	set(http.StatusOK, `{"target_type":"channel","target_value":"telegram","config":{"category_overrides":{"net":{"label":"Network","tools":["web_search"]}},"forced_category_states":{"net":false}}}`)
	says(person, "calculator read_file; off: net (Network)")
	waitFor(t, "the page shows the changes, the latest first", func() bool {
		_, page := owner.do("GET", "/admin/policy", nil)
		_, changes, found := strings.Cut(page, "Last changes")
		channel := strings.Index(changes, "net off, net has web_search")
		return found && channel > 0 && strings.Index(changes, "crawler on, data off") > channel
	})
	set(http.StatusBadRequest, `{"target_type":"planet","target_value":"x","config":{}}`)

	w.kill()
	w.start()
	says(person, "calculator read_file; off: net (Network)")
	says(guest, "read_file; off: data")
	owner = w.visit()
	set(http.StatusOK, `{"target_type":"channel","target_value":"telegram","config":{}}`)
	set(http.StatusOK, fmt.Sprintf(`{"target_type":"user","target_value":"telegram:%d","config":{"forced_category_states":{"data":true}}}`, guest))
	says(guest, "calculator read_file; off: ")
	says(person, "calculator read_file web_search; off: ")

	anna := w.invite("anna")
	for _, path := range []string{"/api/admin/policy", "/admin/policy"} {
		if status, _ := anna.do("GET", path, nil); status != http.StatusForbidden {
			t.Errorf("%s for somebody invited: %d", path, status)
		}
	}
	conversation := anna.conversation()
	set(http.StatusOK, `{"target_type":"invite","target_value":"anna","config":{"ui_blocks":{"block_upload":true,"block_delete":true}}}`)
	if status, page := anna.do("GET", "/c/"+conversation, nil); status != http.StatusOK || !strings.Contains(page, `data-blocked="block_delete block_upload"`) {
		t.Errorf("anna's page: %d %s", status, page)
	}
	if status, body := anna.upload("cat.txt", "meow"); status != http.StatusForbidden {
		t.Errorf("anna uploads: %d %s", status, body)
	}
	if status, body := anna.do("DELETE", "/c/"+conversation, nil); status != http.StatusForbidden {
		t.Errorf("anna deletes: %d %s", status, body)
	}
	if status, body := owner.upload("cat.txt", "meow"); status != http.StatusCreated {
		t.Errorf("the owner uploads: %d %s", status, body)
	}
	status, body := anna.do("GET", "/api/effective-policy", nil)
	if status != http.StatusOK || !strings.Contains(body, `"forced_category_states":{"data":false}`) || strings.Contains(body, "web_search") {
		t.Errorf("what holds for anna: %d %s", status, body)
	}
}
