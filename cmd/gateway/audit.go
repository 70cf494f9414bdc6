package main

import (
	"context"
	"fmt"
	"time"

	"parley/store"
	"parley/tools"
)

// An auditor keeps the audit log (R-S27). Nobody waits for it: what a tool does
// is in the log of its session, too.
type auditor struct {
	chain  *store.Chain
	events chan store.Event
}

func (h *house) openAudit() {
	h.auditor.events = make(chan store.Event, 1024)
	h.auditor.chain = store.NewChain(h.store.Log("audit"), h.store.Bucket("audit"))
}

// audit notes that who did what.
func (h *house) audit(kind, who, what string) {
	h.auditor.events <- store.Event{Time: time.Now(), Kind: kind, Who: who, What: h.redact(what)}
}

// auditTools notes every call.
func (h *house) auditTools(t tools.Tool) tools.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
		r, err := run(ctx, c)
		outcome := "done"
		if err != nil || r.Failed {
			outcome = "failed"
		}
		h.audit("tool", string(c.From.ID)+" at "+string(c.Session), fmt.Sprintf("%s %s, call %s", c.Name, outcome, c.Key()))
		return r, err
	}
	return t
}

// keepAudit writes down what is noted, until ctx ends.
func (h *house) keepAudit(ctx context.Context) {
	for {
		select {
		case e := <-h.auditor.events:
			h.writeDown(e)
		case <-ctx.Done():
			return
		}
	}
}

// endAudit writes down what was noted and not written yet.
func (h *house) endAudit() {
	for len(h.auditor.events) > 0 {
		h.writeDown(<-h.auditor.events)
	}
}

func (h *house) writeDown(e store.Event) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.auditor.chain.Append(ctx, e); err != nil {
		h.Log.Error("not in the audit log", "kind", e.Kind, "who", e.Who, "what", e.What, "err", err)
	}
}
