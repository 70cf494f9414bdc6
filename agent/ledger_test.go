package agent

import (
	"context"
	"testing"

	"parley/llm"
	"parley/store/mem"
)

// P15, R-S15: a page of the ledger that is on disk leaves the memory, none other
// does, and what is spent later is added to it.
func TestLedgerLetsGo(t *testing.T) {
	p, bodies := New(Config{Store: mem.New()}, Settings{}), map[string][]byte{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i, fails := range []bool{false, true, true, false, false} {
		p.Charge(t.Context(), "test:7", "", "", "main", llm.Usage{In: 10})
		ctx := t.Context()
		if fails {
			ctx = ended
		}
		if err := p.writeLedger(ctx, bodies); (err != nil) != fails {
			t.Fatal(err)
		}
		if n := len(p.ledger.pages); (n > 0) != fails {
			t.Errorf("%d pages in memory, written: %v", n, !fails)
		}
		by := p.payers("test:7", "", "")[:1]
		p.opened(t.Context(), by)()
		if got, want := by[0].Spent[aToken], float64(10*(i+1)); got != want {
			t.Errorf("%v tokens are spent, want %v", got, want)
		}
	}
}
