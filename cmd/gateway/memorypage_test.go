package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/chat"
	"parley/tools/network/networktest"
)

// TestMemoryPage: what people have the agent remember stands on the owner's page
// as changes, is undone there, and is nobody else's. A dream begins there, or
// why it does not is told (point 5, R-S14).
func TestMemoryPage(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	const anna = person + 1
	for _, id := range []int64{person, anna} {
		w.tg.Say(id, "/remember tea")
	}
	w.start()
	w.says(person, "Noted.")
	w.says(anna, "Noted.")
	owner := w.visit()
	do := func(method, path string, want int, says string) {
		t.Helper()
		status, body := owner.do(method, path, map[string]any{})
		if status != want || !strings.Contains(body, says) {
			t.Errorf("%s %s: %d %s, want %d %s", method, path, status, body, want, says)
		}
	}
	var all struct {
		People []struct {
			Who     chat.Person
			Changes []struct{ By string }
		}
	}
	_, body := owner.do("GET", "/api/memory", nil)
	if err := json.Unmarshal([]byte(body), &all); err != nil || len(all.People) != 2 || all.People[0].Who != chat.TheOwner || all.People[1].Changes[0].By != "/remember" {
		t.Fatalf("memory is %s, %v", body, err)
	}
	them := string(all.People[1].Who)
	do("GET", "/api/memory/changes/1?who="+them, http.StatusOK, `: tea\n"`)
	do("POST", "/api/memory/changes/1/restore?who="+them, http.StatusOK, `"by":"restore 1"`)
	do("POST", "/api/memory/changes/1/restore?who="+them, http.StatusConflict, "cannot be undone")
	do("GET", "/owner/memory/changes/2?who="+them, http.StatusOK, `<span class="cut">-- `)
	for who, there := range map[chat.Person]bool{chat.TheOwner: true, all.People[1].Who: false} {
		text, err := os.ReadFile(filepath.Join(w.dir, "workspace", who.Folder(), "MEMORY.md"))
		if err != nil || strings.Contains(string(text), ": tea") != there {
			t.Errorf("of %s is known %q, %v", who, text, err)
		}
	}
	do("POST", "/api/cron/dream/run", http.StatusNoContent, "")
	do("GET", "/api/audit", http.StatusOK, `"restore 1: `+them)
	if status, _ := w.invite("anna").do("GET", "/api/memory", nil); status != http.StatusNotFound {
		t.Errorf("somebody else gets %d", status)
	}
}
