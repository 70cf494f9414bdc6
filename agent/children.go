package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
	"parley/tools"
)

// helperPrefix begins the sessions of helpers.
const helperPrefix = "agent:"

// helperSession names the session of the helper id.
func helperSession(id string) chat.SessionID { return chat.SessionID(helperPrefix + id) }

// helperOf returns the ID of the helper that m is for, or "".
func helperOf(m chat.Message) string {
	if id, ok := strings.CutPrefix(string(m.In), helperPrefix); ok {
		return id
	}
	return ""
}

// Spawn begins the helper c. To do it again for the same Call is to find the
// same helper, also when it has ended, and so it is to ask once more in a turn
// for what a helper found out by looking alone (E-039). A *[tools.BusyError]
// says that none was begun.
func (p *Pool) Spawn(ctx context.Context, c tools.Child) (tools.Child, error) {
	known, err := p.reserve(ctx, &c)
	if err != nil || known.ID != "" {
		return known, err
	}
	whole := context.WithoutCancel(ctx) // what is begun of it is done
	err = p.insist(ctx, "note helper "+c.ID, func(context.Context) error {
		rev, err := store.Save(whole, p.helpers, c.ID, c, 0)
		p.kin.note(c, rev)
		return err
	})
	if err != nil {
		p.kin.drop(c.ID)
	} else {
		err = p.insist(ctx, "give helper "+c.ID+" its task", func(context.Context) error { return p.push(whole, taskOf(c)) })
	}
	if err != nil {
		return tools.Child{}, fmt.Errorf("begin helper %s: %w", c.ID, err)
	}
	return c, nil
}

// reserve makes c known, unless it is, or is like one that is, or there are too many.
func (p *Pool) reserve(ctx context.Context, c *tools.Child) (known tools.Child, err error) {
	if err := p.know(ctx); err != nil {
		return known, err
	}
	for _, id := range []string{c.ID, p.kin.like(*c)} {
		known, _, err = store.Load[tools.Child](ctx, p.helpers, id)
		switch {
		case err == nil && id == c.ID && known.Call != c.Call:
			return tools.Child{}, fmt.Errorf("begin helper: its ID %s is another's", id)
		case !errors.Is(err, store.ErrNotFound):
			return known, err
		}
	}
	c.Began = time.Now()
	c.Woken, c.Said = c.Began, c.Began
	p.mu.Lock()
	if r := p.running[c.Parent]; r != nil && !r.said.IsZero() {
		c.Said = r.said
	}
	p.mu.Unlock()
	if err = p.kin.add(*c); err != nil {
		return tools.Child{}, err
	}
	if err = p.MayHaveChild(ctx, chat.Whose(c.At, c.From, c.Group), c.Parent); err != nil {
		p.kin.drop(c.ID)
	}
	return tools.Child{}, err
}

// taskOf is the message that begins c.
func taskOf(c tools.Child) chat.Message {
	return chat.Message{
		ID: c.ID, Account: "agent", At: c.At, From: c.From, Group: c.Group, Text: c.Task, Time: c.Began,
		Origin: chat.FromParent, In: helperSession(c.ID), Tainted: c.Tainted,
	}
}

// Await returns the helper id once it has ended. A helper that nobody knows is
// store.ErrNotFound.
func (p *Pool) Await(ctx context.Context, id string) (tools.Child, error) {
	if err := p.know(ctx); err != nil {
		return tools.Child{}, err
	}
	for {
		k, alive := p.kin.get(id)
		if !alive {
			c, _, err := store.Load[tools.Child](ctx, p.helpers, id)
			if err != nil {
				err = fmt.Errorf("await helper %s: %w", id, err)
			}
			return c, err
		}
		select {
		case <-k.news:
		case <-ctx.Done():
			return tools.Child{}, context.Cause(ctx)
		}
	}
}

// Children returns the helpers of the session id, those too that ended within a
// week, the oldest first; of "" those of all.
func (p *Pool) Children(ctx context.Context, id chat.SessionID) (all []tools.Child, err error) {
	for key, err := range p.helpers.Keys(ctx, "") {
		var c tools.Child
		if err == nil {
			c, _, err = store.Load[tools.Child](ctx, p.helpers, key)
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
		case errors.Is(err, store.ErrDamaged):
			p.Log.Error("the record of a helper is damaged", "helper", key, "err", err)
		case err != nil:
			return nil, fmt.Errorf("list helpers: %w", err)
		case id == "" || c.Parent == id:
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b tools.Child) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// change has f change the record of a helper; f says whether it does.
func (p *Pool) change(ctx context.Context, id string, f func(*tools.Child) bool) (tools.Child, error) {
	for {
		c, rev, err := store.Load[tools.Child](ctx, p.helpers, id)
		if err != nil || !f(&c) {
			return c, err
		}
		if rev, err = store.Save(ctx, p.helpers, id, c, rev); err == nil {
			p.kin.note(c, rev)
			return c, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return c, err
		}
	}
}

// settle notes how a helper ended, unless it has ended before, and tells its
// parent where that is due. It is done again until it is done: each part of it
// takes effect once.
func (p *Pool) settle(ctx context.Context, id string, end func(*tools.Child)) error {
	c, err := p.change(ctx, id, func(c *tools.Child) bool {
		if c.State.Over() {
			return false
		}
		end(c)
		c.Ended, c.Result = time.Now(), head(valid(c.Result), tools.MaxChildText)
		return true
	})
	if err != nil || !c.Report {
		return ignore(err, store.ErrNotFound)
	}
	if err := p.push(ctx, reportOf(c)); err != nil {
		return err
	}
	_, err = p.change(ctx, id, func(c *tools.Child) bool { c.Report = false; return true })
	return ignore(err, store.ErrNotFound)
}

func ignore(err, such error) error {
	if errors.Is(err, such) {
		return nil
	}
	return err
}

// reportOf is the message that tells the parent of c what came of it. Its turn
// answers in the chat (D-092).
func reportOf(c tools.Child) chat.Message {
	how := "completed successfully"
	if c.State != tools.ChildAnswered {
		how = "failed"
	}
	m := chat.Message{
		ID: "report/" + c.ID, Account: "agent", At: c.At, From: c.From, Group: c.Group, Time: c.Ended, Origin: chat.FromSubagent, Tainted: c.Tainted,
		Text: fmt.Sprintf("[Subagent '%s' %s]\n\nTask: %s\n\nResult: %s\n\n%s", c.Label, how, c.Task, cmp.Or(c.Result, wordsNoResult), wordsSummarize),
	}
	if c.Parent != c.At.Session() {
		m.In = c.Parent
	}
	return m
}
