package upkeep_test

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"parley/agent"
	"parley/audit"
	"parley/channels"
	"parley/channels/attachments"
	"parley/cmd/gateway/upkeep"
	"parley/store/mem"
	"parley/texts"
)

// P28: each period of the config is that of a part, or of several, and of no other.
func TestEveryPeriodCounts(t *testing.T) {
	s, log := mem.New(), slog.New(slog.DiscardHandler)
	u := upkeep.Upkeep{
		Pool:  agent.New(agent.Config{Store: s, Log: log, Texts: &texts.English().Agent}, agent.Settings{}),
		Hub:   channels.NewHub(channels.Config{Store: s, Log: log, Texts: &texts.English().Channels}),
		Files: attachments.New(attachments.Config{Store: s, Log: log}),
		Audit: audit.New(s, func(text string) string { return text }, log),
	}
	used := map[string]int{}
	periods := reflect.TypeFor[upkeep.Periods]()
	for _, f := range reflect.VisibleFields(periods) {
		if f.Type != reflect.TypeFor[time.Duration]() {
			continue
		}
		u.Periods = func() (p upkeep.Periods) {
			reflect.ValueOf(&p).Elem().FieldByIndex(f.Index).SetInt(1)
			return p
		}
		parts := 0
		for _, part := range u.Parts() {
			if part.Period() > 0 {
				parts++
				used[part.Name]++
			}
		}
		if parts == 0 {
			t.Errorf("no part stays as long as %s says", f.Name)
		}
	}
	for _, part := range u.Parts() {
		if (part.Limit != nil) != (part.Name == "audit") {
			t.Errorf("%s has a limit, or has none", part.Name)
		}
		if used[part.Name] != 1 {
			t.Errorf("%d periods say how long %s stay, or the name is not its own", used[part.Name], part.Name)
		}
	}
}
