package budget

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"parley/chat"
	"parley/llm"
	"parley/store"
)

// A ModelUsage is what was used of one model.
type ModelUsage struct {
	Turns    int       `json:"turns,omitempty"` // that were begun with it
	Usage    llm.Usage `json:"usage"`
	Cost     float64   `json:"cost,omitempty"`     // by the prices of then
	Unpriced int       `json:"unpriced,omitempty"` // tokens whose price was not known
}

// Priced reports whether the price of any of it was known.
func (m ModelUsage) Priced() bool { return m.Usage.In+m.Usage.Out > m.Unpriced }

func (m ModelUsage) plus(more ModelUsage) ModelUsage {
	return ModelUsage{
		Turns:    m.Turns + more.Turns,
		Usage:    m.Usage.Add(more.Usage),
		Cost:     m.Cost + more.Cost,
		Unpriced: m.Unpriced + more.Unpriced,
	}
}

// priced returns m with what it costs of model by now.
func (b *Book) priced(model string, m ModelUsage) ModelUsage {
	cost, known := b.cfg.Price(model, m.Usage)
	if !known {
		m.Unpriced = m.Usage.In + m.Usage.Out
		return m
	}
	m.Cost = cost
	return m
}

// add counts what was used of model.
func (u *usage) add(model string, m ModelUsage) {
	if u.Models == nil {
		u.Models = map[string]ModelUsage{}
	}
	u.Models[model] = u.Models[model].plus(m)
}

// Usage returns what was used by day, person and model, the latest day first.
func (b *Book) Usage(ctx context.Context) ([]llm.Spent, error) {
	all := map[string]usage{}
	b.mu.Lock()
	for key, used := range b.used { // before the disk: what is changed now, leaves the memory later
		all[key] = usage{Models: maps.Clone(used.Models)}
	}
	b.mu.Unlock()
	for key, err := range b.cfg.Bucket.Keys(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("read usage: %w", err)
		}
		_, inMemory := all[key]
		if _, _, ofPerson := personOf(key); !ofPerson || inMemory {
			continue
		}
		used, _, err := b.read.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("read usage: %w", err)
		}
		all[key] = used
	}
	return byDay(all), nil
}

// byDay returns the usage of the persons among all, by keys.
func byDay(all map[string]usage) (spent []llm.Spent) {
	type row struct {
		day   string
		who   chat.Person
		model string
	}
	rows := map[row]ModelUsage{}
	for key, used := range all {
		day, who, ofPerson := personOf(key)
		if !ofPerson {
			continue
		}
		for model, m := range used.Models {
			rows[row{day, who, model}] = rows[row{day, who, model}].plus(m)
		}
	}
	for r, m := range rows {
		spent = append(spent, llm.Spent{
			Day: r.day, Who: string(r.who), Model: r.model,
			Turns: m.Turns, Usage: m.Usage, Cost: m.Cost, Unpriced: m.Unpriced,
		})
	}
	slices.SortFunc(spent, func(x, y llm.Spent) int {
		return cmp.Or(cmp.Compare(y.Day, x.Day), cmp.Compare(x.Who, y.Who), cmp.Compare(x.Model, y.Model))
	})
	return spent
}

// Conversation returns what the conversation under way in a session has used, by
// model, its subagents and summaries included.
func (b *Book) Conversation(ctx context.Context, id chat.SessionID) map[string]ModelUsage {
	accounts := []account{{key: conversationPrefix + string(id)}}
	unlock := b.open(ctx, accounts)
	now := usage{Models: maps.Clone(accounts[0].used.Models)}
	ended := accounts[0].used.ended
	unlock()
	if ended {
		return now.Models
	}
	earlier, _, err := b.read.Get(ctx, importedPrefix+accounts[0].key)
	if err != nil { // mostly that there is none
		return now.Models
	}
	for model, m := range earlier.Models {
		now.add(model, m)
	}
	return now.Models
}

// EndConversation forgets what the conversation of a session has used: another
// begins.
func (b *Book) EndConversation(id chat.SessionID) {
	key := conversationPrefix + string(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used[key] = &usage{key: key, opened: b.today(), ended: true}
	b.disk.Set(key, nil)
	b.disk.Set(importedPrefix+key, nil)
}

// RunUsage returns what a run of a scheduled job has used so far, with all that
// subagents did for it.
func (b *Book) RunUsage(ctx context.Context, run string) (tokens int, cost float64) {
	accounts := []account{{key: runPrefix + run}}
	defer b.open(ctx, accounts)()
	used := accounts[0].used
	return int(used.Spent[Tokens]), used.Spent[Money]
}

// Past is usage from before the book counted by model.
type Past struct {
	Day     string // 2006-01-02
	Person  chat.Person
	Session chat.SessionID // "" if its conversation is over
	Model   string
	Turns   int
	Usage   llm.Usage
}

// importedKey is set once past usage was taken in.
const importedKey = "imported"

// Import takes in past usage, unless it was taken in before. If it breaks off it
// is to be called again.
func (b *Book) Import(ctx context.Context, past iter.Seq2[Past, error]) error {
	if _, _, err := b.cfg.Bucket.Get(ctx, importedKey); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	all := map[string]*usage{}
	add := func(key string, p Past) {
		if all[key] == nil {
			all[key] = &usage{}
		}
		all[key].add(p.Model, b.priced(p.Model, ModelUsage{Turns: p.Turns, Usage: p.Usage}))
	}
	for p, err := range past {
		if err != nil {
			return err
		}
		add(importedPrefix+p.Day+personInfix+string(p.Person), p)
		if p.Session != "" {
			add(importedPrefix+conversationPrefix+string(p.Session), p)
		}
	}
	for key, used := range all {
		body, _ := json.Marshal(used) // it holds only what JSON can
		if _, err := b.cfg.Bucket.Put(ctx, key, body, store.Any); err != nil {
			return err
		}
	}
	_, err := b.cfg.Bucket.Put(ctx, importedKey, []byte("{}"), store.Any)
	return err
}
