package main

import (
	"net/http"
	"slices"
	"strings"
)

const (
	customAPI = "/api/admin/custom-tools"
	serverAPI = "/api/admin/mcp-servers"
)

func changePolicy(owner apiClient) {
	owner.t.Helper()
	owner.strict("POST", "/api/admin/policy", "PolicyOrder")
	owner.call("GET", "/api/admin/policy", nil, 200)
	order := map[string]any{"target_type": "role", "target_value": "user", "config": map[string]any{
		"forced_category_states": map[string]any{"crawler": false}, "ui_blocks": map[string]any{"block_delete": true},
	}}
	owner.call("POST", "/api/admin/policy", order, 200)
	order["config"].(map[string]any)["updated_at"] = "2020-01-02T03:04:05Z"
	owner.call("POST", "/api/admin/policy", order, 409)
	owner.call("GET", "/api/admin/policy", nil, 200)
	owner.call("GET", "/api/admin/approvals", nil, 200)
	approval := map[string]any{"chat": "telegram:1", "session": "telegram:1", "effect": "Delete **a**?", "by": "owner"}
	owner.call("POST", "/api/admin/approvals/revoke", approval, 404)
	owner.call("POST", "/api/admin/approvals/revoke", map[string]any{"chat": 1}, 400)
}

func changeCustomTools(owner apiClient) {
	owner.t.Helper()
	tool := map[string]any{
		"id": "say_tea", "description": "Says tea.", "parameters": map[string]any{"type": "object", "properties": map[string]any{}},
		"execution_code": "print('tea')\n",
	}
	saved := owner.call("POST", customAPI, tool, 200)
	owner.call("GET", customAPI, nil, 200)
	owner.call("POST", customAPI, map[string]any{"id": "Not a name!"}, 400)
	tool["revision"] = "another"
	owner.call("POST", customAPI, tool, 409)
	const file = customAPI + "/file?id=say_tea&name=execution.py"
	owner.call("GET", file, nil, 200)
	owner.call("GET", customAPI+"/file?id=nothing&name=execution.py", nil, 404)
	owner.call("GET", customAPI+"/file?id=say_tea&name=other.py", nil, 400)
	owner.call("POST", file, map[string]any{"content": "print('more tea')\n"}, 200)
	owner.call("POST", customAPI+"/file?id=nothing&name=execution.py", map[string]any{"content": ""}, 404)
	owner.call("POST", customAPI+"/file?id=say_tea&name=other.py", map[string]any{"content": ""}, 400)
	owner.call("POST", customAPI+"/reload", nil, 200)
	owner.call("POST", customAPI+"/test", map[string]any{"id": "say_tea", "arguments": map[string]any{}}, 200)
	owner.call("POST", customAPI+"/test", map[string]any{"id": "nothing"}, 404)
	owner.call("POST", customAPI+"/test", map[string]any{}, 400)
	owner.call("GET", customAPI+"/versions?id=say_tea", nil, 200)
	owner.call("GET", customAPI+"/versions?id=nothing", nil, 404)
	owner.call("GET", customAPI+"/diff?id=say_tea&version=1", nil, 200)
	owner.call("GET", customAPI+"/diff?id=say_tea&version=one", nil, 400)
	owner.call("GET", customAPI+"/diff?id=nothing&version=1", nil, 404)
	owner.call("POST", customAPI+"/restore", map[string]any{"id": "say_tea", "version": 1}, 200)
	owner.call("POST", customAPI+"/restore", map[string]any{"id": "say_tea", "version": 404}, 404)
	owner.strict("POST", customAPI+"/restore", "RestoreOrder")
	owner.call("DELETE", customAPI+"?id=say_tea", nil, 200)
	owner.call("DELETE", customAPI+"?id=say_tea", nil, 404)
	owner.call("DELETE", customAPI, nil, 400)
	if id := owner.field(saved, "data", "id"); id != "say_tea" {
		owner.t.Errorf("the id is %s", id)
	}
}

func lookAfterServers(owner apiClient) {
	owner.t.Helper()
	owner.call("GET", serverAPI, nil, 200)
	report := owner.call("GET", serverAPI+"/server?name=notes", nil, 200)
	owner.call("GET", serverAPI+"/server?name=nothing", nil, 404)
	code := owner.field(report, "data", "pending", "code")
	for _, path := range []string{"/approve", "/reconnect", "/test", "/login", "/login/finish", "/logout"} {
		owner.strict("POST", serverAPI+path, "MCPOrder")
		if path != "/login/finish" {
			owner.call("POST", serverAPI+path, map[string]any{"name": "nothing"}, 404)
		}
	}
	owner.call("POST", serverAPI+"/approve", map[string]any{"name": "notes", "code": "aaaaaaaa"}, 409)
	owner.call("POST", serverAPI+"/approve", map[string]any{"name": "notes", "code": code, "numbers": []int{99}}, 400)
	owner.call("POST", serverAPI+"/approve", map[string]any{"name": "notes", "code": code}, 200)
	owner.call("POST", serverAPI+"/reconnect", map[string]any{"name": "notes"}, 200)
	owner.call("POST", serverAPI+"/test", map[string]any{"name": "notes"}, 200)
	owner.call("POST", serverAPI+"/login", map[string]any{"name": "notes"}, 400)
	owner.call("POST", serverAPI+"/login/finish", map[string]any{"id": "nothing", "answer": "1"}, 502)
	owner.call("POST", serverAPI+"/logout", map[string]any{"name": "notes"}, 200)
}

// refuseStrangers wants every operation that is not public to refuse people who are not signed in, and, unless it
// is for everybody, people who are no owners.
func refuseStrangers(d *apiDocument, nobody apiClient, anna *visitor) {
	d.t.Helper()
	guest := nobody
	guest.http = &anna.Client
	for pattern, o := range d.operations {
		method, path, _ := strings.Cut(pattern, " ")
		if o.public {
			continue
		}
		path = strings.NewReplacer("{id}", "1", "{model}", "parley").Replace(path)
		nobody.call(method, path, nil, http.StatusUnauthorized)
		if strings.HasPrefix(path, "/v1/") || slices.Contains([]string{"/signout", "/api/effective-policy"}, path) {
			continue
		}
		refused := http.StatusNotFound
		if strings.HasPrefix(path, "/api/admin/") {
			refused = http.StatusForbidden
		}
		guest.call(method, path, nil, refused)
	}
	guest.call("GET", "/api/effective-policy", nil, 200)
}
