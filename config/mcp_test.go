package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// D-100, D-101: entries that other programs wrote load unchanged.
func TestMCPServers(t *testing.T) {
	_, err := parseText(`{"tools": {"mcp_servers": {
		"filesystem": {"comment": "files", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp",
			"--api-key", "sk-literal-2", "--region=eu-central-1", "--token=${ARG}"],
			"env": {"API_KEY": "sk-literal-1", "LOG_LEVEL": "debugging"}, "tool_timeout": 60, "enabled_tools": ["read_file"], "autoApprove": []},
		"remote": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${REMOTE}"}, "toolTimeout": "90s"}
	}, "rules": {"mcp": "ask", "mcp_remote": "off"}}}`, "REMOTE=remote-secret", "ARG=argument-secret")
	if err == nil || !strings.Contains(err.Error(), "tools.rules.mcp: no tools are of this category") {
		t.Errorf("the test's drivers have no category mcp: %v", err)
	}
	c, err := parseText(`{"tools": {"mcp_servers": {
		"filesystem": {"comment": "files", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp",
			"--api-key", "sk-literal-2", "--region=eu-central-1", "--token=${ARG}"],
			"env": {"API_KEY": "sk-literal-1", "LOG_LEVEL": "debugging"}, "tool_timeout": 60, "enabled_tools": ["read_file"], "autoApprove": []},
		"remote": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${REMOTE}"}, "toolTimeout": "90s"}
	}, "rules": {"mcp_remote": "off"}}}`, "REMOTE=remote-secret", "ARG=argument-secret")
	if err != nil {
		t.Fatal(err)
	}
	files, remote := c.Tools.MCPServers["filesystem"], c.Tools.MCPServers["remote"]
	if files.ToolTimeout != time.Minute || !slices.Equal(files.EnabledTools, []string{"read_file"}) || !files.Enabled || files.Sandbox != "auto" {
		t.Errorf("%+v", files)
	}
	if remote.ToolTimeout != 90*time.Second || remote.Headers["Authorization"] != "Bearer remote-secret" ||
		!slices.Equal(remote.EnabledTools, []string{"*"}) || !slices.Equal(remote.For, []string{"owners"}) {
		t.Errorf("%+v", remote)
	}
	if want := []string{"Bearer remote-secret", "argument-secret", "remote-secret", "sk-literal-1", "sk-literal-2"}; !slices.Equal(c.Secrets, want) {
		t.Errorf("secrets: %q, want %q", c.Secrets, want)
	}
	if len(c.Removed) != 1 || !strings.Contains(c.Removed[0], "tools.mcpServers.filesystem.autoApprove is not a key of Parley") {
		t.Errorf("warnings: %q", c.Removed)
	}
}

// D-101: other programs switch a server off by "disabled". Whatever they wrote of the other way to reach a server is
// no fault while it is empty, or type says what counts.
func TestMCPServersOfOtherPrograms(t *testing.T) {
	for entry, enabled := range map[string]bool{
		`"command": "x"`:                                                      true,
		`"command": "x", "disabled": true`:                                    false,
		`"command": "x", "disabled": false`:                                   true,
		`"command": "x", "disabled": true, "enabled": false`:                  false,
		`"enabled": true, "command": "x", "disabled": false`:                  true,
		`"command": "x", "url": "", "headers": {}`:                            true,
		`"command": "", "args": [], "env": {}, "cwd": "", "url": "https://a"`: true,
		`"type": "http", "command": "x", "args": ["-y"], "url": "https://a"`:  true,
	} {
		c, err := parseText(`{"tools": {"mcpServers": {"a": {` + entry + `}}}}`)
		if err != nil {
			t.Errorf("%s: %v", entry, err)
		} else if got := c.Tools.MCPServers["a"].Enabled; got != enabled || len(c.Removed) > 0 {
			t.Errorf("%s: enabled: %v; warnings: %q", entry, got, c.Removed)
		}
	}
}

// D-102: what makes no sense is an error that names the key.
func TestBadMCPServers(t *testing.T) {
	for entry, want := range map[string]string{
		`"a": {}`: "tools.mcpServers.a.command: is missing",
		`"a": {"command": "x", "url": "https://example.com"}`:          "tools.mcpServers.a.url: is there beside command",
		`"a": {"type": "stdio", "url": "https://example.com"}`:         "tools.mcpServers.a.command: is missing",
		`"a": {"type": "sse", "command": "x"}`:                         "tools.mcpServers.a.url: is missing",
		`"a": {"type": "carrier-pigeon", "command": "x"}`:              `tools.mcpServers.a.type: "carrier-pigeon" is not known`,
		`"a": {"url": "ftp://example.com"}`:                            "tools.mcpServers.a.url: must be an address",
		`"a": {"command": "x", "enabledtools": []}`:                    "tools.mcpServers.a.enabledtools: unknown key; it is written enabledTools",
		`"a": {"command": "x", "toolTimeout": 0}`:                      "tools.mcpServers.a.toolTimeout: must be from 1s to 10m",
		`"a": {"command": "x", "network": ["http://a"]}`:               "tools.mcpServers.a.network[0]:",
		`"a": {"command": "x", "folders": ["notes"]}`:                  "tools.mcpServers.a.folders[0]: must be an absolute path",
		`"a": {"command": "x", "for": ["ann"]}`:                        "tools.mcpServers.a.for[0]: is nobody",
		`"a": {"command": "x", "cwd": "notes"}`:                        "tools.mcpServers.a.cwd: must be an absolute path",
		`"a": {"command": "x", "args": "-y"}`:                          "tools.mcpServers.a.args: is text, must be a list",
		`"a": {"command": "x", "env": {"A B": "1"}}`:                   "must be the name of an environment variable",
		`"a b": {"command": "x"}, "a.b": {"command": "x"}`:             "for models",
		`"a": {"command": "x", "disabled": "yes"}`:                     "tools.mcpServers.a.disabled: is text, must be true or false",
		`"a": {"disabled": true, "command": "x", "enabled": true}`:     "tools.mcpServers.a.disabled: contradicts enabled; keep one of them",
		`"a": {"command": "x", "enabled": false, "disabled": false}`:   "tools.mcpServers.a.disabled: contradicts enabled; keep one of them",
		`"a": {"url": "https://a", "cwd": "/srv"}`:                     "tools.mcpServers.a.cwd: is for a program; a server with a url has none",
		`"a": {"url": "https://a", "args": ["-y"]}`:                    "tools.mcpServers.a.args: is for a program",
		`"a": {"url": "https://a", "env": {"A": "1"}}`:                 "tools.mcpServers.a.env: is for a program",
		`"a": {"url": "https://a", "sandbox": "none"}`:                 "tools.mcpServers.a.sandbox: is for a program",
		`"a": {"url": "https://a", "network": ["*"]}`:                  "tools.mcpServers.a.network: is for a program",
		`"a": {"url": "https://a", "hostNetwork": true}`:               "tools.mcpServers.a.hostNetwork: is for a program",
		`"a": {"url": "https://a", "folders": ["~/notes"]}`:            "tools.mcpServers.a.folders: is for a program",
		`"a": {"command": "x", "headers": {"A": "1"}}`:                 "tools.mcpServers.a.headers: is for a server with a url",
		`"a": {"command": "x", "auth": {}}`:                            "tools.mcpServers.a.auth: is for a server that is reached by streamable HTTP",
		`"a": {"command": "x", "toolTimeout": 60, "tool_timeout": 30}`: "tools.mcpServers.a.tool_timeout: unknown key; it is written toolTimeout",
	} {
		_, err := parseText(`{"tools": {"mcpServers": {` + entry + `}}}`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
