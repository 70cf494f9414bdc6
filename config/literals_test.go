package config

import (
	"strings"
	"testing"
)

// TestLiterals: what is a secret in a text of the config is found by what the config knows of its keys, by names where
// it knows nothing, in texts that are broken, too; what is no secret, and what comes from the environment, is not.
func TestLiterals(t *testing.T) {
	s := Source{File: "/etc/parley/config.json", Data: "/d", Environ: Environ{}, Drivers: drivers()}
	const whole = "\ufeff" + `{
  // 5" wide; the old one was "apiKey": "sk-COMMENT"
  "models": {
    "main": { "type": "openai", "model": "gpt", "apiKey": "sk-\u0041\"B", "baseUrl": "https://me:LOGIN@api.example/v1" },
    "outer": { "type": "openai", "model": "gpt", "apiKey": "${KEY}", "baseUrl": "https://api.example/v1" },
    "odd": { "type": "unheard of", "apiKey": "sk-ODD" }
  },
  "http": { "adminToken": "ADMIN", "listen": "127.0.0.1:1" },
  "channels": { "telegram": { "token": "1:TELEGRAM", "allow": ["5"] }, "web": {} },
  "tools": { "mcpServers": { "a": {
    "command": "x", "env": { "API_KEY": "ENV", "PLACE": "HERE", "V": "${V}", "W": "$${W}" },
    "args": ["-y", "--api-key=ARG", "--token", "NEXT", "--key", "${K}", "--auth=${A}", "run", "${R}", "-H", "Authorization: Bearer ${B}", "--env=E=${B}", "-H=Authorization: Bearer ${B}", "-eF=${B}", "--env=G=GIVEN"],
    "headers": { "X": "Bearer ${T}", "Y": "Bearer HEADER" }
  },
    "b": { "url": "https://a.example/mcp?token=QUERY" }, "c": { "url": "https://a.example/s/Ab12-PATH/mcp" },
    "d": { "url": "https://a.example/mcp?token=${T}" }, "e": { "url": "https://a.example/mcp" }
  }, "exec": { "env": { "PLAIN": "EXEC" } } },
  // "args": ["serve", "--key", "OLD"], "env": { "DEBUG": "OLDER" }
  "modles": { "passwort": "no", "password": "UNKNOWN" },
  "log": { "level": "info" }
}
`
	got := func(text string, known ...string) string {
		t.Helper()
		var all []string
		for _, l := range Literals(s, []byte(text), known) {
			if text[l.Start] != '"' {
				t.Errorf("%q begins with no quote", text[l.Start:l.End])
			}
			all = append(all, l.Value)
		}
		return strings.Join(all, " | ")
	}
	const want = `sk-COMMENT | sk-A"B | https://me:LOGIN@api.example/v1 | sk-ODD | ADMIN | 1:TELEGRAM | ENV | HERE | $${W} | ` +
		`--api-key=ARG | NEXT | --env=G=GIVEN | Bearer HEADER | https://a.example/mcp?token=QUERY | https://a.example/s/Ab12-PATH/mcp | EXEC | OLD | OLDER | UNKNOWN`
	if all := got(whole); all != strings.Replace(want, "UNKNOWN", "no | UNKNOWN", 1) {
		t.Errorf("found %s", all)
	}
	broken := strings.Replace(whole, `"http": {`, `"http": { "list": ["KNOWN-SECRET"],, "cut": "KNOWN`, 1) + `"token": "cut off`
	all := got(broken, "KNOWN-SECRET", "gpt")
	for _, secret := range []string{"sk-COMMENT", `sk-A"B`, "sk-ODD", "ADMIN", "1:TELEGRAM", "ENV", "UNKNOWN", "KNOWN-SECRET", "cut off", "HERE",
		"--api-key=ARG", "NEXT", "HEADER", "QUERY", "PATH", "EXEC", "OLD", "OLDER",
	} {
		if !strings.Contains(all, secret) {
			t.Errorf("in a text that is broken %s is not found, but %s", secret, all)
		}
	}
	if strings.Contains(all, "gpt") || strings.Contains(all, "${T}") || strings.Contains(all, "info") {
		t.Errorf("found %s", all)
	}
	if all := got(""); all != "" {
		t.Errorf("in nothing there is %s", all)
	}
}
