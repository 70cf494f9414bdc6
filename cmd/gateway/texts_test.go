package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"parley/agent"
	"parley/channels"
	"parley/chat"
	"parley/cmd/gateway/control"
	"parley/cmd/gateway/mcpservers"
	"parley/config"
	"parley/memory"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/store"
	"parley/store/mem"
	"parley/texts/textstest"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/oversight"
	"parley/workspace"
)

// allFromCatalogue wants text to be in the language of full-width letters, but
// for what data matches.
func allFromCatalogue(t *testing.T, text string, data *regexp.Regexp) {
	t.Helper()
	if rest := textstest.Foreign(text, data); rest != "" || text == "" {
		t.Errorf("%q is not in the catalogue, of\n%s", rest, text)
	}
}

// TestCommandsFromCatalogue does with the other commands of the gateway, and with
// what it tells owners, as jobs.TestAllFromCatalogue does with /cron.
func TestCommandsFromCatalogue(t *testing.T) {
	data := regexp.MustCompile("`[^`]*`|/[a-z.]+|\\b(read|web|config|json|FAULT|ID)\\b|[0-9] ms")
	bucket := mem.New().Bucket("toolStats")
	none, err := tools.OpenStats(t.Context(), mem.New().Bucket("toolStats"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	seeds := map[string]tools.Stat{
		"read": {Tool: "read", Runs: 20, Failures: 15, CacheHits: 1, Skipped: 1, Duplicates: 1, Rollbacks: 1},
		"web":  {Tool: "web", Runs: 1},
	}
	for name, s := range seeds {
		value, _ := json.Marshal(s)
		if _, err := bucket.Put(t.Context(), name, value, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	used, err := tools.OpenStats(t.Context(), bucket, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(t *testing.T, w *watch) {
		w.texts = textstest.Wide()
		w.mcp = &mcpservers.Parts{}
		for _, w.stats = range []*tools.Stats{none, used} {
			allFromCatalogue(t, oversight.Statistics(w.stats, w.texts.Gateway.Tools), data)
		}
		if names := used.Unreliable(); len(names) == 0 {
			t.Error("no tool is unreliable")
		}
		for _, c := range w.commands() {
			allFromCatalogue(t, c.Help, data)
			if c.Name != "dream" {
				continue
			}
			for _, m := range []chat.Message{
				{ID: "1", At: anna.At, From: anna.From, Text: "/dream"},
				{ID: "2", At: inPrivate.At, From: inPrivate.From, Text: "/dream sing"},
				{ID: "3", At: inPrivate.At, From: inPrivate.From, Text: "/dream"},
				{ID: "4", At: inPrivate.At, From: inPrivate.From, Text: "/dream"},
				{ID: "5", At: inPrivate.At, From: inPrivate.From, Text: "/dream"}, // it is under way
			} {
				if m.ID == "4" {
					w.Config.Dream.Cron = "@daily"
				}
				text, err := c.Do(t.Context(), m)
				if err != nil {
					t.Error(err)
				}
				allFromCatalogue(t, text, data)
			}
		}
		w.now.Store(&config.Config{FellBack: errors.New("FAULT")})
		allFromCatalogue(t, strings.Join(w.startNotes(), "\n"), data)
		for _, summed := range []int{0, 3} {
			allFromCatalogue(t, memory.DreamNote(w.texts.Gateway.Dream, summed, 1, 2), data)
		}
		allFromCatalogue(t, strings.Join(control.DamageWarning(w.texts.Gateway.Report, []string{"1"}), "\n"), data)
	})
}

// TestHeartbeatFromCatalogue: why a heartbeat did nothing is in the language of
// full-width letters, too.
func TestHeartbeatFromCatalogue(t *testing.T) {
	data := regexp.MustCompile(`\bHEARTBEAT\.md\b`)
	folder, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	inBubble(t, func(t *testing.T, w *watch) {
		w.texts, w.files = textstest.Wide(), folder
		w.pool = agent.New(agent.Config{Store: mem.New(), Log: slog.New(slog.DiscardHandler)}, agent.Settings{})
		w.hub = channels.NewHub(channels.Config{Store: mem.New(), Log: slog.New(slog.DiscardHandler)})
		for _, text := range []string{"", "- [ ] water the plants"} {
			if err := folder.Names().WriteFile("HEARTBEAT.md", []byte(text)); err != nil {
				t.Fatal(err)
			}
			e, err := jobHost{w.gateway}.heartbeat().Run(t.Context(), scheduler.Job{ID: jobs.HeartbeatID}, scheduler.Run{})
			if err != nil {
				t.Fatal(err)
			}
			allFromCatalogue(t, e.Note, data)
		}
	})
}

// TestStepsFromCatalogue: what the built-in tools say of a call while it is made
// is in the language of full-width letters, too.
func TestStepsFromCatalogue(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watch) {
		c := *w.Config
		c.Tools.Web.Search.Provider = "duckduckgo"
		sources, err := toolSources(&c, toolHost{files: files.New(files.Rules{})})
		if err != nil {
			t.Fatal(err)
		}
		var all []tools.Tool
		for _, source := range sources {
			offered, err := source.Tools(t.Context(), tools.Scope{})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, offered...)
		}
		data := regexp.MustCompile(`\b(tea|telegram)\b`)
		args := map[string]any{"action": "add", "text": "tea", "chat": "telegram:42", "message": "tea", "every_seconds": 60}
		for _, name := range []string{"path", "pattern", "url", "query"} {
			args[name] = "tea"
		}
		args["urls"] = []any{"tea"}
		n := 0
		for _, tool := range all {
			if tool.Preview != nil {
				n++
				allFromCatalogue(t, tool.Preview(textstest.Wide().Agent.Steps, args), data)
			}
		}
		if n < 20 {
			t.Errorf("only %d tools say what they are at", n)
		}
	})
}
