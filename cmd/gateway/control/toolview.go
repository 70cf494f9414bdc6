package control

import (
	"context"
	"slices"
	"strings"

	"parley/audit"
	"parley/chat"
	"parley/llm"
	"parley/web/toolpages"
)

// A View reads what is kept of the gateway's use.
type View struct {
	Events *audit.Chain
	Usage  func(context.Context) ([]llm.Spent, error)
	Talks  func(ctx context.Context, prefix string) ([]chat.Talk, error) // the latest first
}

// Changes lists the latest events of the audit log whose text begins with prefix: at most 20, of some days.
func (v View) Changes(ctx context.Context, prefix string) (all []toolpages.Change, err error) {
	events, err := v.Events.Tail(ctx, 20_000)
	for _, e := range events {
		if len(all) < 20 && e.Kind == "config" && strings.HasPrefix(e.What, prefix) {
			all = append(all, toolpages.Change{Time: e.Time, Who: e.Who, What: e.What})
		}
	}
	return all, err
}

// People lists who has used the agent lately. What an owner may know them by is the beginning of
// their latest conversation, where a chat has the ID of the person.
func (v View) People(ctx context.Context) (all []toolpages.Person, err error) {
	spent, err := v.Usage(ctx)
	if err != nil {
		return nil, err
	}
	talks, err := v.Talks(ctx, "")
	if err != nil {
		return nil, err
	}
	about := map[string]string{}
	for _, t := range slices.Backward(talks) {
		at, _, _ := strings.Cut(string(t.Session), "/") // without the thread
		about[at] = t.Title
	}
	for _, s := range spent {
		p := toolpages.Person{ID: s.Who, About: about[s.Who]}
		if s.Who != string(chat.TheOwner) && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all, nil
}
