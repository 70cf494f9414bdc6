package main

import (
	"slices"
	"strings"
	"testing"

	"parley/config"
	"parley/host"
)

func TestBanner(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		env       []string
		want      []string // each on a line
		not       string
	}{
		{"fresh", `{}`, nil, []string{
			"model     demo, which is no real model: set OPENAI_API_KEY", `write "models" in /etc/parley/config.json`,
			"telegram  not connected: get a token from @BotFather", "data      /home/ann/.parley", "config    /etc/parley/config.json",
		}, "warning"},
		{"key", `{}`, []string{"OPENAI_API_KEY=sk-canary"}, []string{"model     gpt-5-mini at api.openai.com, because OPENAI_API_KEY is set; OPENAI_MODEL or"}, "canary"},
		{"named", `{"models": {"main": {"type": "openai", "model": "m", "baseUrl": "https://user:canary@h:8/v1"}, "demo": {"type": "demo"}}}`, nil,
			[]string{"model     m at h:8 (models.main; agent.model changes it)"}, "canary"},
		{"demo chosen", `{"models": {"main": {"type": "openai", "model": "m"}, "demo": {"type": "demo"}}, "agent": {"model": "demo"}}`, nil,
			[]string{"or set agent.model in /etc/parley/config.json"}, ""},
		{"bots", `{"channels": {"telegram": {"token": "1:canary"}, "telegram:b": {"token": "2:canary", "allow": ["1", "2"]}}}`, nil,
			[]string{"telegram  nobody is on its allow list: write to the bot, then approve", "telegram:b 2 people may talk, plus anyone an owner lets in"}, "canary"},
		{"one", `{"channels": {"telegram": {"token": "1:a", "allow": ["1"]}}}`, nil,
			[]string{"telegram  1 person may talk, plus anyone an owner lets in"}, ""},
		// R-S7: a star warns at every start.
		{"star", `{"channels": {"telegram": {"token": "1:a", "allow": ["*"]}}}`, nil, []string{"telegram  everybody may talk", `warning   channels.telegram.allow has "*"`}, ""},
		{"nobody's owner", `{"owners": ["telegram:7"], "store": {"type": "mem"}}`, nil,
			[]string{"warning   owners has telegram:7, but there is no channel telegram", "warning   the store is in memory"}, ""},
	} {
		c, err := parseText(tt.src, tt.env...)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		lines := c.Banner(host.Version(), false)
		for _, w := range tt.want {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, w) }) {
				t.Errorf("%s: no %q in\n%s", tt.name, w, strings.Join(lines, "\n"))
			}
		}
		if all := strings.Join(lines, "\n"); tt.not != "" && strings.Contains(all, tt.not) {
			t.Errorf("%s: %q in\n%s", tt.name, tt.not, all)
		}
	}
	c, err := parseText(`{"channels": {"telegram": {"token": "1:a", "allow": ["*"]}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(c.Banner(host.Version(), true), "\n"); !strings.Contains(all, "telegram  waits for a gateway: parley chat alone does not receive") {
		t.Error(all)
	}
	c, err = config.Parse(config.Source{File: "/x/config.json", Data: "/x", Environ: config.Environ{}, Drivers: drivers()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(c.Banner(host.Version(), false), "\n"); !strings.Contains(all, "config    defaults, because there is no /x/config.json (parley onboard writes one)") {
		t.Error(all)
	}
}
