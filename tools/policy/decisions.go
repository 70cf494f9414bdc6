package policy

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"parley/store"
)

// decisions are all that owners and people decided, as the store had it. They must not
// be changed.
type decisions struct {
	configs map[string]Config  // by Target.key
	damaged map[string]error   // why the Config of a Target.key cannot be read
	choices map[string]toggles // by person
}

// A memory keeps the decisions between two changes of them, because every turn asks for
// them, several times, and nearly always nobody has decided anything.
type memory struct {
	mu      sync.Mutex
	kept    *decisions // nil: they have to be read
	changes int        // counts calls of forget
}

// forget has the next turn read the decisions. Call it after each change of the store.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = nil
	m.changes++
}

// get returns the decisions, which read reads if they are not kept.
func (m *memory) get(read func() (*decisions, error)) (*decisions, error) {
	m.mu.Lock()
	kept, changes := m.kept, m.changes
	m.mu.Unlock()
	if kept != nil {
		return kept, nil
	}
	d, err := read()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changes == changes { // else d may be from before the change
		m.kept = d
	}
	return d, nil
}

// decisions returns what was decided.
func (b *Book) decisions(ctx context.Context) (*decisions, error) {
	return b.memory.get(func() (*decisions, error) { return b.readDecisions(ctx) })
}

func (b *Book) readDecisions(ctx context.Context) (*decisions, error) {
	d := &decisions{configs: map[string]Config{}, damaged: map[string]error{}, choices: map[string]toggles{}}
	for e, err := range b.configs.Each(ctx, "") {
		switch {
		case errors.Is(err, store.ErrDamaged):
			d.damaged[e.Key] = err
		case err != nil:
			return nil, fmt.Errorf("read the policy: %w", err)
		default:
			d.configs[e.Key] = e.Value
		}
	}
	for e, err := range b.choices.Each(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("read which tools people chose: %w", err)
		}
		d.choices[e.Key] = e.Value
	}
	return d, nil
}
