package tools

import (
	"context"
	"fmt"
	"testing"
	"time"
)

type benchArgs struct {
	Path  string `json:"path" limit:"min=1"`
	Limit int    `json:"limit,omitempty" limit:"min=1 max=2000 default=200"`
}

// benchTool does nothing.
func benchTool(name string, hints Hints) Tool {
	t := New(name, "Does nothing.", func(context.Context, Call, benchArgs) (Result, error) { return Result{Text: "done"}, nil })
	t.Hints = hints
	return t
}

const benchInput = `{"path":"notes/a.md","limit":"20"}`

// The aim is at most 20 µs and 40 allocations.
func BenchmarkPipeline(b *testing.B) {
	for _, bench := range []struct {
		name  string
		hints Hints
		cache *Cache
	}{
		{"write", Hints{}, nil},
		{"read", Hints{ReadOnly: true}, nil},
		{"cached", Hints{ReadOnly: true, Cacheable: true}, NewCache(time.Hour)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			cfg := StandardConfig{Cache: bench.cache, Stats: new(Stats), Strays: new(Strays)}
			k, err := NewKit(b.Context(), Scope{}, []Source{Fixed{benchTool("a", bench.hints)}}, Standard(cfg)...)
			if err != nil {
				b.Fatal(err)
			}
			c := callTo("a", benchInput)
			b.ReportAllocs()
			for b.Loop() {
				if r := k.Call(b.Context(), c); r.Text != "done" {
					b.Fatal(r)
				}
			}
		})
	}
}

// Ten reads of a round, of which four run at a time.
func BenchmarkTogether(b *testing.B) {
	k := kitOf(b, benchTool("a", Hints{ReadOnly: true}))
	var calls []Call
	for i := range 10 {
		c := callTo("a", fmt.Sprintf(`{"path":"%d.md"}`, i))
		c.ID = fmt.Sprint(i)
		calls = append(calls, c)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, group := range k.Groups(calls) {
			k.Together(b.Context(), group)
		}
	}
}

// A Kit is made for each turn.
func BenchmarkNewKit(b *testing.B) {
	var all Fixed
	for i := range 30 {
		all = append(all, benchTool(fmt.Sprintf("tool_%d", i), Hints{ReadOnly: i%2 == 0}))
	}
	cfg := StandardConfig{Cache: NewCache(time.Hour), Stats: new(Stats), Strays: new(Strays)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewKit(b.Context(), Scope{}, []Source{all}, Standard(cfg)...); err != nil {
			b.Fatal(err)
		}
	}
}
