package conversation_test

import (
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/conversation"
	"parley/llm"
	"parley/retention/retentiontest"
	"parley/store"
	"parley/store/mem"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
)

// promptsOf returns the prompts kept in s.
func promptsOf(s store.Store) *conversation.Prompts {
	return conversation.NewPrompts(s, slog.New(slog.DiscardHandler))
}

// trimPrompts removes what was not used for so long.
func trimPrompts(t *testing.T, p *conversation.Prompts, period time.Duration) (removed int) {
	t.Helper()
	pass := store.Trimming{Before: time.Now().Add(-period), Step: func(n int) error {
		removed += n
		return nil
	}}
	if err := p.Trim(t.Context(), pass); err != nil {
		t.Error(err)
	}
	return removed
}

// P28: what requests were made with goes when none was made with it for long.
func TestTrimPrompts(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := mem.New()
		p := promptsOf(s)
		rules := strings.Repeat("rules for all ", 10)
		used := rules + "\n\nused"
		digest := p.KeepSystem(t.Context(), used)
		unused := p.KeepSystem(t.Context(), rules+"\n\nunused")
		kit := func() *tools.Kit {
			return (&tools.Kit{}).With([]tools.Tool{{ToolSpec: llm.ToolSpec{Name: "read_file"}}})
		}
		set := p.KeepTools(t.Context(), kit()).Digest
		if _, err := s.Bucket(store.BucketPrompts).Put(t.Context(), "legacy", []byte("of before uses were noted"), store.Any); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			timetest.Sleep(24 * time.Hour)
			p.KeepSystem(t.Context(), used)
			p.KeepTools(t.Context(), kit())
			if n := trimPrompts(t, p, 60*24*time.Hour); n != 0 {
				t.Fatalf("%d texts were removed too early", n)
			}
		}
		if n := trimPrompts(t, p, 20*24*time.Hour); n != 2 {
			t.Errorf("%d texts were removed, want 2", n)
		}
		if text, err := p.Text(t.Context(), digest); text != used || err != nil {
			t.Errorf("instructions that are used are kept as %q, %v", text, err)
		}
		if text, err := p.Text(t.Context(), set); !strings.Contains(text, "read_file") || err != nil {
			t.Errorf("tools that are used are kept as %q, %v", text, err)
		}
		if _, err := p.Text(t.Context(), unused); err == nil {
			t.Error("instructions that are not used are kept")
		}
		if again := p.KeepSystem(t.Context(), rules+"\n\nunused"); again != unused {
			t.Errorf("instructions have the digest %s, and then %s", unused, again)
		}
		if text, err := p.Text(t.Context(), unused); text != rules+"\n\nunused" || err != nil {
			t.Errorf("instructions that are used again are kept as %q, %v", text, err)
		}
		timetest.Sleep(90 * 24 * time.Hour)
		trimPrompts(t, p, 20*24*time.Hour)
		for _, name := range []string{store.BucketPrompts, store.BucketPromptUses} {
			for key, err := range s.Bucket(name).Keys(t.Context(), "") {
				t.Errorf("in the end the bucket %q has %s, %v", name, key, err)
			}
		}
		p.KeepTools(t.Context(), kit())
		if text, err := p.Text(t.Context(), set); !strings.Contains(text, "read_file") || err != nil {
			t.Errorf("tools that are used again are kept as %q, %v", text, err)
		}
	})
}

// P28: prompts are removed with a crash anywhere: none is left half, and none that is used
// is missing.
func TestTrimPromptsCrashAnywhere(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var digest string
		retentiontest.Run(t, retentiontest.Case{
			Open: func() store.Store {
				s := mem.New()
				p := promptsOf(s)
				p.KeepSystem(t.Context(), "rules\n\nold")
				p.KeepSystem(t.Context(), "others\n\nold")
				timetest.Sleep(10 * 24 * time.Hour)
				digest = p.KeepSystem(t.Context(), "rules\n\nyoung")
				return s
			},
			Before: time.Now().Add(365 * 24 * time.Hour),
			Trim: func(s store.Store, pass store.Trimming) error {
				pass.Before = time.Now().Add(-5 * 24 * time.Hour)
				return promptsOf(s).Trim(t.Context(), pass)
			},
			Check: func(t *testing.T, s store.Store) {
				t.Helper()
				if text, err := promptsOf(s).Text(t.Context(), digest); text != "rules\n\nyoung" || err != nil {
					t.Errorf("what is used is kept as %q, %v", text, err)
				}
				for _, name := range []string{store.BucketPrompts, store.BucketPromptUses} {
					var keys []string
					for key, err := range s.Bucket(name).Keys(t.Context(), "") {
						if err != nil {
							t.Error(err)
						}
						keys = append(keys, key)
					}
					if len(keys) != 2 {
						t.Errorf("the bucket %q has %q", name, keys)
					}
				}
			},
		})
	})
}

// P28: a text that a request is made with at the moment when it is removed is kept.
func TestTrimPromptsWhileTheyAreUsed(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		const text = "rules\n\nlast"
		var p *conversation.Prompts
		var request sync.WaitGroup
		began := false
		digest := ""
		p = promptsOf(storetest.Watch(mem.New(), func(op string) {
			if op != "bucket prompts Delete" || began {
				return
			}
			began = true
			request.Go(func() { digest = p.KeepSystem(t.Context(), text) })
			for range 1000 { // it has the time for it, if nothing keeps it from going on
				runtime.Gosched()
			}
		}, func(string) {}))
		p.KeepSystem(t.Context(), text)
		timetest.Sleep(30 * 24 * time.Hour)
		trimPrompts(t, p, 7*24*time.Hour)
		request.Wait()
		if kept, err := p.Text(t.Context(), digest); kept != text || err != nil {
			t.Errorf("it is kept as %q, %v", kept, err)
		}
	})
}
