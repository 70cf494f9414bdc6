package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/llm"
	"parley/tools"
)

// A Listing is what a server offers, as it said it.
type Listing struct {
	Name         string // what the server calls itself
	Version      string
	Protocol     string // the negotiated version
	Instructions string

	Tools     []*sdk.Tool
	Resources []*sdk.Resource
	Templates []*sdk.ResourceTemplate
	Prompts   []*sdk.Prompt
}

// An offering is what a server offers: what it listed last, and the tools that were made of it. It stays when
// the connection ends.
type offering struct {
	v      *supervisor
	remind sync.Once // has Config.Known asked

	publishing sync.Mutex // held from the review of a list until its tools are there
	inUse      bool       // a turn has needed the server, as Config.Review was told; guarded by publishing

	mu       sync.Mutex
	known    Listing         // as listed last, before the review
	listed   bool            // there was a list
	tools    []tools.Tool    // made of what the review left of known
	withheld map[string]bool // names of those of tools that the review withholds
	says     string          // the instructions that the review left of known, quoted
}

// publish makes tools of what the review leaves of l.
func (o *offering) publish(l Listing) error {
	o.publishing.Lock()
	defer o.publishing.Unlock()
	return o.replace(l, o.inUse)
}

// use notes that a turn needs the server. What was listed before that is reviewed again; if that fails, the next
// turn has it done.
func (o *offering) use() error {
	o.publishing.Lock()
	defer o.publishing.Unlock()
	if o.inUse {
		return nil
	}
	if l, listed := o.listing(); listed {
		if err := o.replace(l, true); err != nil {
			return err
		}
	}
	o.inUse = true
	return nil
}

// replace has what the review leaves of l take the place of what was offered. o.publishing is held.
func (o *offering) replace(l Listing, inUse bool) error {
	v := o.v
	approved := l
	if v.config.Review != nil {
		var err error
		if approved, err = v.config.Review(v.ctx, v.key.server, *v.server, l, inUse); err != nil {
			return fmt.Errorf("review what the server offers: %w", err)
		}
	}
	made := v.makeTools(approved)
	withheld := o.makeWithheld(made, l)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = l
	o.listed = true
	o.tools = append(made, withheld...)
	o.says = quoteInstructions(approved.Instructions)
	o.withheld = map[string]bool{}
	for _, t := range withheld {
		o.withheld[t.Name] = true
	}
	return nil
}

// review has Config.Review look again at what is known of the server.
func (o *offering) review() error {
	l, listed := o.listing()
	if !listed {
		o.offerKnown(o.v.ctx)
		return nil
	}
	return o.publish(l)
}

// recall offers what the server offered when it was connected last, until it is connected again: before a
// restart of Parley, for example. It reports whether anything is offered.
func (o *offering) recall(ctx context.Context) bool {
	o.remind.Do(func() { o.offerKnown(context.WithoutCancel(ctx)) })
	return len(o.all()) > 0
}

// offerKnown offers what Config.Known has, unless the server has been connected since. What a person sees
// in a connection of their own is not for another.
func (o *offering) offerKnown(ctx context.Context) {
	v := o.v
	if v.config.Known == nil || v.key.who != "" {
		return
	}
	l, err := v.config.Known(ctx, v.key.server, *v.server)
	if err != nil {
		v.log.Warn("what the MCP server offered last is not known", "err", err)
		return
	}
	made := v.makeTools(l)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.listed {
		o.tools = made
		o.says = quoteInstructions(l.Instructions)
	}
}

// instructions returns what the server says of itself as a whole, quoted.
func (o *offering) instructions() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.says
}

// all returns the tools, which the caller must not change.
func (o *offering) all() []tools.Tool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tools
}

// count returns how many tools models are offered, and how many are withheld.
func (o *offering) count() (offered, withheld int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.tools) - len(o.withheld), len(o.withheld)
}

// isWithheld reports whether Config.Review withholds a tool. One that was offered when the turn began may
// have been changed since.
func (o *offering) isWithheld(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.withheld[name]
}

// listing returns what the server listed last, before the review.
func (o *offering) listing() (l Listing, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known, o.listed
}

// msgWithheld is what the model reads of a tool that Config.Review withholds.
const msgWithheld = "the server has changed this tool, or added it, since an owner approved what the server offers. " +
	"An owner must look at the change and approve it first: with the command /mcp, or on the page MCP servers"

// makeWithheld makes tools of what l has besides made: they are not listed, and their calls answer that an
// owner must approve them (R-S22). Nothing that the server says of them is shown to models.
func (o *offering) makeWithheld(made []tools.Tool, l Listing) (withheld []tools.Tool) {
	names := map[string]bool{}
	for _, t := range made {
		names[t.Name] = true
	}
	for _, t := range o.v.makeTools(l) {
		if names[t.Name] {
			continue
		}
		withheld = append(withheld, tools.Tool{
			ToolSpec: llm.ToolSpec{
				Name:        t.Name,
				Description: "It is withheld.",
				Schema:      json.RawMessage(`{"type":"object"}`),
			},
			Hints: tools.Hints{Category: t.Category, Who: t.Who, Hidden: true, ReadOnly: true},
			Run: func(context.Context, tools.Call) (tools.Result, error) {
				return failure("tool call", "Withheld", msgWithheld), nil
			},
		})
	}
	return withheld
}
