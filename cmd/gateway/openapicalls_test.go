package main

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/llm/llmtest"
	"parley/tools/mcp/mcptest"
)

// provenElsewhere names the tests that see an answer which TestOpenAPI cannot bring about.
var provenElsewhere = map[string]string{
	"POST /api/aside/{id}/again 204":               "web.TestActions",
	"POST /api/work/{id}/stop 200":                 "web.TestStop",
	"GET /readyz 503":                              "web.TestHealth",
	"POST /v1/chat/completions 502":                "cmd/gateway.TestOpenAIClientOfAModelThatFails",
	"POST /api/admin/approvals/revoke 200":         "web.TestApprovalsPage",
	"POST /api/memory/changes/{id}/accept 200":     "web.TestMemoryLines",
	"POST /api/admin/mcp-servers/login 200":        "web.TestMCPSignInButton",
	"POST /api/admin/mcp-servers/login/finish 200": "web.TestMCPSignInButton",
}

// TestOpenAPI: every operation of docs/openapi.yaml answers the real program's clients as it says: with the
// statuses, types and fields that are described there, and no others.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	d := readAPI(t)
	const friend = 8001
	blocked := make(chan struct{})
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if spokenLast(r) == "tell me later" {
			select {
			case <-blocked:
			case <-ctx.Done():
			}
		}
		return obedient(ctx, r)
	})
	w.channels["telegram"].(map[string]any)["allow"] = []string{strconv.Itoa(person), strconv.Itoa(friend)}
	remote := mcptest.NewChanging(t)
	remote.Offer("read", "Reads.")
	w.more["tools"] = map[string]any{"mcpServers": map[string]any{
		"notes": map[string]any{"url": remote.URL}, "off": map[string]any{"url": remote.URL, "enabled": false},
	}}
	w.more["http"] = map[string]any{"listen": "127.0.0.1:0", "adminToken": adminToken}
	w.start()
	v := w.visit()
	nobody := apiClient{apiDocument: d, base: v.base, http: http.DefaultClient}
	owner := nobody
	owner.bearer = adminToken
	browser := nobody
	browser.http = &v.Client

	w.tg.Say(friend, "tell me later")
	w.askedFor(1)
	for range 2 { // more dead letters
		w.tg.Say(friend, "tell me later")
	}
	w.tg.Block(friend)
	close(blocked)
	w.tg.Say(person, "/remember I like tea")
	w.told(person, "that it is remembered", func(texts []string) bool { return len(texts) > 0 })

	talkToModels(owner, nobody)
	lookAround(owner, nobody)
	w.does(person, `list_dir {"path": "."}`, "mcp_notes_read {}")
	readConversations(owner, "telegram:"+strconv.Itoa(person))
	changeJobs(owner)
	changeMemory(owner)
	changeConfig(owner)
	w.tg.Say(9001, "let me in")
	w.told(9001, "a code", func(texts []string) bool { return len(texts) > 0 })
	changePeople(owner)
	w.logs("reply became a dead letter", 2)
	sendAgain(owner)
	changePolicy(owner)
	changeCustomTools(owner)
	remote.Offer("read", "Reads and sends.")
	w.told(person, "that the server has changed", func(texts []string) bool {
		return strings.Contains(strings.Join(texts, "\n"), "that you have not approved")
	})
	lookAfterServers(owner)
	refuseStrangers(d, nobody, w.invite("anna"))
	browser.call("POST", "/signout", nil, 204)

	there := testNames(t)
	for answer, test := range provenElsewhere {
		if !there[test] {
			t.Errorf("%s: there is no %s", answer, test)
		}
	}

	for _, pattern := range slices.Sorted(maps.Keys(d.operations)) {
		for status := range d.operations[pattern].responses {
			n, _ := strconv.Atoi(status)
			known := provenElsewhere[pattern+" "+status] != ""
			if n != 0 && d.seen[pattern][n] == known {
				t.Errorf("%s is described to answer %s: seen %v, proven elsewhere %v", pattern, status, d.seen[pattern][n], known)
			}
		}
	}
}

// talkToModels does what clients of OpenAI do.
func talkToModels(owner, nobody apiClient) {
	owner.t.Helper()
	secret := owner.field(owner.call("POST", "/api/keys", map[string]any{"person": "owner", "prefix": "laptop"}, 201), "secret")
	program := nobody
	program.bearer = secret
	program.call("GET", "/v1/models", nil, 200)
	program.call("GET", "/v1/models/parley", nil, 200)
	program.call("GET", "/v1/models/nothing", nil, 404)
	ask := map[string]any{"model": "parley", "messages": []map[string]any{{"role": "user", "content": "hello"}}}
	const path = "/v1/chat/completions"
	program.call("POST", path, ask, 200)
	ask["stream"], ask["stream_options"] = true, map[string]any{"include_usage": true}
	if events := string(program.call("POST", path, ask, 200)); !strings.Contains(events, `"usage"`) {
		owner.t.Errorf("no usage in %s", events)
	}
	ask["model"] = "nothing"
	program.call("POST", path, ask, 404)
	program.call("POST", path, map[string]any{"model": "parley", "messages": []string{}}, 400)
	status, kind, body := program.sendAs("text/plain", "POST", path, ask)
	program.check("POST", path, status, kind, body)
	if status != 415 {
		owner.t.Errorf("text/plain: %d %s", status, body)
	}
}

// lookAround reads what changes nothing.
func lookAround(owner, nobody apiClient) {
	owner.t.Helper()
	nobody.call("GET", "/healthz", nil, 200)
	nobody.call("GET", "/readyz", nil, 200)
	nobody.call("POST", "/signin", map[string]any{"token": "wrong"}, 401)
	nobody.call("POST", "/signin", map[string]any{"token": adminToken}, 204)
	nobody.strict("POST", "/signin", "SignIn")
	for _, path := range []string{
		"/metrics", "/api/status", "/api/usage", "/api/errors", "/api/audit", "/api/audit?verify=yes", "/api/backup", "/api/tools",
		"/api/tools?all=1", "/api/effective-policy", "/api/sessions", "/api/cron", "/api/memory", "/api/people",
	} {
		owner.call("GET", path, nil, 200)
	}
}

// strict wants an endpoint to know the fields that the document names, and no other.
func (c apiClient) strict(method, path, schema string) {
	c.t.Helper()
	said := c.call(method, path, map[string]any{"no such field": 1}, 400)
	message := c.field(said, "error")
	_, list, found := strings.Cut(strings.Split(message, " param:")[0], "there are ")
	names := regexp.MustCompile(`\w+`).FindAllString(list, -1)
	slices.Sort(names)
	if want := slices.Sorted(maps.Keys(c.at("components", "schemas", schema, "properties"))); !found || !slices.Equal(names, want) {
		c.t.Errorf("docs/openapi.yaml says of %s %q, and the program reads %q: %s", schema, want, names, said)
	}
}

func readConversations(owner apiClient, session string) {
	owner.t.Helper()
	owner.call("GET", "/api/sessions", nil, 200)
	owner.call("GET", "/api/sessions?q=hello", nil, 200)
	owner.call("GET", "/api/tool-stats", nil, 200)
	owner.call("GET", "/api/tool-stats?tool=list_dir", nil, 200)
	owner.call("GET", "/api/tool-stats?tool=nothing", nil, 404)
	owner.call("DELETE", "/api/tool-stats", nil, 204)
	at := "/api/sessions/" + url.PathEscape(session)
	for _, path := range []string{"", "/export", "/calls", "/recording"} {
		owner.call("GET", at+path, nil, 200)
		owner.call("GET", "/api/sessions/telegram:404"+path, nil, 404)
	}
	owner.call("DELETE", at, nil, 204)
	owner.call("DELETE", at, nil, 404)
}

func changeJobs(owner apiClient) {
	owner.t.Helper()
	owner.strict("POST", "/api/cron", "JobOrder")
	job := map[string]any{
		"name": "tea", "message": "Say tea", "cron_expr": "0 9 * * 1-5", "tz": "Europe/Berlin", "isolated": true, "quiet": false,
		"model": "main", "missed": "skip", "enabled": true, "to": "telegram:" + strconv.Itoa(person),
	}
	at := "/api/cron/" + owner.field(owner.call("POST", "/api/cron", job, 201), "id")
	owner.call("GET", "/api/cron/preview?when=every+day+at+9", nil, 200)
	owner.call("GET", "/api/cron/preview?when=someday", nil, 400)
	owner.call("GET", "/api/cron/rehearsal?days=14", nil, 200)
	owner.call("GET", "/api/cron/rehearsal?days=99", nil, 400)
	owner.call("POST", "/api/cron/rehearsal", nil, 200)
	owner.call("POST", "/api/cron/rehearsal?days=0", nil, 400)
	owner.call("PATCH", at, map[string]any{"every_seconds": 3600, "enabled": false}, 200)
	owner.strict("PATCH", at, "JobOrder")
	owner.call("PATCH", "/api/cron/nothing", map[string]any{"every_seconds": 3600}, 404)
	owner.call("POST", at+"/run", nil, 400)
	owner.call("POST", at+"/run?force=1", nil, 204)
	owner.call("POST", "/api/cron/nothing/run", nil, 404)
	owner.call("GET", "/api/cron", nil, 200)
	owner.call("DELETE", at, nil, 204)
	owner.call("DELETE", at, nil, 404)
	owner.call("DELETE", "/api/cron/dream", nil, 409)
}

func changeMemory(owner apiClient) {
	owner.t.Helper()
	owner.call("GET", "/api/memory", nil, 200)
	id := owner.field(owner.call("GET", "/api/memory/changes?who=owner", nil, 200), "changes", "0", "id")
	owner.call("GET", "/api/memory/changes?who=telegram:404", nil, 404)
	owner.call("GET", "/api/memory/changes/"+id, nil, 200)
	owner.call("GET", "/api/memory/changes/404", nil, 404)
	owner.call("GET", "/api/memory/lines?who=telegram:404", nil, 404)
	owner.strict("POST", "/api/memory/corrections", "Correction")
	lines := owner.call("GET", "/api/memory/lines?q=tea", nil, 200)
	line := map[string]any{"file": "MEMORY.md", "line": 9, "was": owner.field(lines, "lines", "0", "text"), "text": "- tea, green"}
	owner.call("POST", "/api/memory/corrections?who=owner", line, 409)
	owner.call("POST", "/api/memory/corrections?who=telegram:404", line, 404)
	owner.call("POST", "/api/memory/changes/"+id+"/accept", nil, 409)
	owner.call("POST", "/api/memory/changes/404/accept", nil, 404)
	owner.call("POST", "/api/memory/changes/"+id+"/restore", nil, 200)
	owner.call("POST", "/api/memory/changes/"+id+"/restore", nil, 409)
	owner.call("POST", "/api/memory/changes/404/restore", nil, 404)
	owner.call("POST", "/api/memory/corrections", map[string]any{"file": "MEMORY.md", "text": "- tea, green"}, 200)
}

func changeConfig(owner apiClient) {
	owner.t.Helper()
	said := owner.call("GET", "/api/config", nil, 200)
	text, base := owner.field(said, "text"), owner.field(said, "sum")
	owner.strict("POST", "/api/config", "ConfigOrder")
	owner.strict("POST", "/api/config/check", "ConfigText")
	owner.call("POST", "/api/config/check", map[string]any{"text": "{"}, 200)
	owner.call("POST", "/api/config/check", map[string]any{"text": text + "\n"}, 200)
	owner.call("POST", "/api/config", map[string]any{"base": base, "text": text + "\n"}, 200)
	owner.call("POST", "/api/config", map[string]any{"base": base, "text": text}, 409)
	id := owner.field(owner.call("GET", "/api/config", nil, 200), "versions", "0", "id")
	owner.call("GET", "/api/config/versions/"+id, nil, 200)
	owner.call("GET", "/api/config/versions/1", nil, 404)
}

func changePeople(owner apiClient) {
	owner.t.Helper()
	owner.strict("POST", "/api/people", "Invite")
	owner.call("POST", "/api/people", map[string]any{"name": "Bert!"}, 400)
	owner.call("POST", "/api/people", map[string]any{"name": "bert"}, 201)
	if all := owner.call("GET", "/api/people/everybody", nil, 200); !strings.Contains(string(all), "web:bert") {
		owner.t.Errorf("who was invited is not among %s", all)
	}
	owner.strict("POST", "/api/keys", "KeyOrder")
	owner.call("POST", "/api/keys", map[string]any{"person": "carl"}, 404)
	key := owner.field(owner.call("POST", "/api/keys", map[string]any{"person": "bert"}, 201), "id")
	owner.call("GET", "/api/people", nil, 200)
	owner.call("DELETE", "/api/keys/"+key, nil, 204)
	owner.call("DELETE", "/api/keys/"+key, nil, 404)
	owner.call("DELETE", "/api/people/bert", nil, 204)
	owner.call("DELETE", "/api/people/nothing", nil, 404)
	code := owner.field(owner.call("GET", "/api/status", nil, 200), "pairings", "0", "code")
	owner.call("POST", "/api/pairings/"+code+"/approve", nil, 200)
	owner.call("POST", "/api/pairings/aaaaaaaa/approve", nil, 404)
	owner.call("GET", "/api/people/everybody", nil, 200)
	owner.strict("POST", "/api/people/unpair", "Unpairing")
	owner.call("POST", "/api/people/unpair", map[string]any{"id": "telegram:9001"}, 204)
	owner.call("POST", "/api/people/unpair", map[string]any{"id": "telegram:9001"}, 404)
	owner.strict("POST", "/api/people/block", "Unpairing")
	owner.call("POST", "/api/people/block", map[string]any{"id": "telegram:9001"}, 204)
	owner.call("POST", "/api/people/unblock", map[string]any{"id": "telegram:9001"}, 204)
	owner.call("POST", "/api/people/unblock", map[string]any{"id": "telegram:9001"}, 404)
	owner.call("POST", "/api/people/unblock", map[string]any{"id": "9001"}, 400)
	owner.call("POST", "/api/people/block", map[string]any{"id": "web:owner"}, 409)
}

func sendAgain(owner apiClient) {
	owner.t.Helper()
	key := func() string {
		return url.PathEscape(owner.field(owner.call("GET", "/api/status", nil, 200), "parked", "0", "key"))
	}
	owner.call("POST", "/api/parked/"+key()+"/resend", nil, 204)
	owner.call("POST", "/api/parked/nothing/resend", nil, 404)
	owner.call("POST", "/api/parked/"+key()+"/drop", nil, 204)
	owner.call("POST", "/api/aside/nothing/again", nil, 404)
	owner.call("POST", "/api/aside/nothing/drop", nil, 204)
	owner.call("GET", "/api/dashboard", nil, 200)
	owner.call("GET", "/api/logs?level=INFO&q=pair&time=1h", nil, 200)
	owner.call("GET", "/api/logs?level=loud", nil, 400)
	owner.call("POST", "/api/work/nothing/stop", nil, 404)
}

// testNames returns the tests of the packages that prove answers, as documents name them.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range []string{"web", "cmd/gateway"} {
		files, err := filepath.Glob("../../" + folder + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(text), -1) {
				names[folder+"."+m[1]] = true
			}
		}
	}
	return names
}
