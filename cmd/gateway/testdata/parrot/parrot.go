// Package parrot is a model provider and a store for tests.
package parrot

import (
	"context"
	"strings"

	"parley/llm"
	"parley/store"
	"parley/store/mem"
)

// A Model is an entry of models in config.json.
type Model struct {
	Voice string `json:"voice" default:"soft" allowed:"soft, loud"`
}

// Build implements llm.Driver.
func (m *Model) Build(name string) llm.Model {
	return llm.ModelFunc(func(_ context.Context, req llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		_, text, _ := strings.Cut(req.Messages[len(req.Messages)-1].Text, "\n")
		if m.Voice == "loud" {
			text = strings.ToUpper(text)
		}
		return llm.Message{Role: llm.Assistant, Text: name + " repeats: " + text, Model: name, Finish: llm.Stopped}, nil
	})
}

// Sees implements llm.Driver.
func (*Model) Sees() bool { return false }

// Host implements llm.Driver.
func (*Model) Host() string { return "a cage" }

// A Store is "store" in config.json.
type Store struct {
	Cages int `json:"cages" default:"1" from:"1" to:"9"`
}

// Open implements store.Driver.
func (*Store) Open(context.Context, store.Host) (store.Store, error) { return mem.New(), nil }
