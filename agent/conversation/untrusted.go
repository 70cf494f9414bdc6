package conversation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/untrusted"
)

// Untrusted content is what neither a person nor an owner of the gateway wrote
// in this conversation: pages, quotes, files that people sent, what a subagent
// made of them. A turn is untrusted while the model is shown any of it (R-S12),
// and so is what the model says then, because it may say it in the content's name.

func (e Entry) untrusted() bool { return len(e.sources) > 0 }

// untrustedSources returns the origins of the untrusted content of r, nil if it has none.
func untrustedSources(r tools.Result) []string {
	if !r.Tainted {
		return nil
	}
	if sources := chat.JoinSources(nil, r.Sources...); sources != nil {
		return sources
	}
	return []string{"the result of a tool"}
}

// Untrusted returns the origins of the untrusted content that a request made of h
// shows, nil if there is none.
func (h *History) Untrusted() (sources []string) {
	if h.view.summary.Tainted && h.view.summary.Text != "" {
		sources = h.view.summary.Sources
		if sources == nil { // of a summary that an earlier version made
			sources = []string{"a summary of what was said before"}
		}
	}
	for i := range h.view.entries {
		e := &h.view.entries[i]
		sources = chat.JoinSources(sources, e.sources...)
		if e.heard != "" && h.view.vision && len(e.pictures) > 0 { // anybody may have drawn it
			sources = chat.JoinSources(sources, "the picture "+e.pictures[0])
		}
	}
	return sources
}

// Guests names what the model is shown, in an owner's turn, of people who are no
// owners, as in groups: nobody acts with another's rights, not in a later turn
// either. It does not make what the model says untrusted content, because their
// memory may keep that.
func (h *History) Guests() (sources []string) {
	if h.open == nil || h.open.from.Role != chat.Owner {
		return nil
	}
	if h.view.summary.Text != "" {
		sources = chat.JoinSources(nil, h.view.summary.Guests...)
	}
	return chat.JoinSources(sources, h.view.entries.Guests()...)
}

// Guests names what is in es of people who are no owners.
func (es Entries) Guests() (sources []string) {
	for i := range es {
		if e := &es[i]; e.who != "" && e.from.Role != chat.Owner {
			sources = chat.JoinSources(sources, "what "+cmp.Or(chat.Inline(e.from.Name, 64), "somebody")+" said here")
		}
	}
	return sources
}

// UntrustedIn returns the origins of the untrusted content in the conversation of
// the session id, as far as the model is still shown it; with guests also who
// besides owners has spoken there. It reads the log, because an open turn owns
// the session.
func (ss *Sessions) UntrustedIn(ctx context.Context, id chat.SessionID, guests bool) (sources []string, err error) {
	st, _, err := ss.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	since := max(st.From, 1) - 1
	h, asked := NewHistory(ss.zone), uint64(0)
	for r, err := range ss.branchRecords(ctx, &Session{ID: id, State: st, ReadSince: &since}) {
		if err != nil {
			return nil, err
		}
		h.Apply(r.Seq, r.Record)
		if r.Asked != nil { // what did not fit into that request is shown no more
			asked, sources = r.Seq, r.Asked.Untrusted
		}
	}
	if asked == 0 {
		sources = h.Untrusted()
	}
	for i := range h.view.entries {
		if h.view.entries[i].seq >= asked {
			sources = chat.JoinSources(sources, h.view.entries[i].sources...)
		}
	}
	if guests {
		sources = chat.JoinSources(sources, h.view.entries.Guests()...)
	}
	return sources, nil
}

// TypedByOwners returns what owners typed in the turn under way, message by message.
func (h *History) TypedByOwners() (all []string) {
	for _, e := range h.view.entries[h.view.turnStart():] {
		if e.typed && e.from.Role == chat.Owner && e.said != "" {
			all = append(all, e.said)
		}
	}
	return all
}

// Known returns what the model is shown, by where it came from. trustedTask says
// that what no person said is a task that an owner was asked about.
func (h *History) Known(kit *tools.Kit, trustedTask bool) (k untrusted.Known) {
	calls, now := map[string]llm.ToolCall{}, h.view.turnStart()
	for i := range h.view.entries {
		e := &h.view.entries[i]
		for _, c := range e.Calls {
			calls[c.ID] = c // IDs are of one turn: of two with the same the later is meant
			if known, _ := kit.Tool(c.Name); known.Untrusted {
				k.Addressed = append(k.Addressed, addressesOf(c)...)
			}
		}
		switch {
		case e.own && i >= now:
			k.Words = append(k.Words, e.said)
		case e.own, e.job:
			k.Spoken = append(k.Spoken, e.said)
		}
		switch {
		case e.heard != "" && trustedTask && e.who == "":
			k.Spoken = append(k.Spoken, e.said)
		case e.heard != "" && e.result:
			k.Private = append(k.Private, e.quoted)
			k.Spoken = append(k.Spoken, headOf(e.Text))
		case e.heard != "":
			k.Quoted = append(k.Quoted, e.quoted)
			k.Spoken = append(k.Spoken, headOf(e.Text))
		case e.Role == llm.ToolRole && e.public:
			k.Public = append(k.Public, published(kit, e.Text, calls[e.Call]))
		case e.Role == llm.ToolRole:
			k.Private = append(k.Private, e.Text)
		}
	}
	k.Told = append(k.Told, h.view.summary.Text)
	return k
}

// headOf returns the line that the gateway wrote: when something was said is no secret.
func headOf(text string) string {
	head, _, _ := strings.Cut(text, "\n")
	return head
}

// published returns the text that c gave, with what it asked for.
func published(kit *tools.Kit, text string, c llm.ToolCall) untrusted.Published {
	p := untrusted.Published{Text: text}
	if known, _ := kit.Tool(c.Name); bytes.Contains(known.Schema, []byte(`"query"`)) {
		p.Asked = strings.Join(textsIn(c.Args), "\n")
	} else {
		p.Opened = textsIn(c.Args)
	}
	return p
}

// addressesOf returns the addresses that c is to open.
func addressesOf(c llm.ToolCall) []string {
	return slices.DeleteFunc(textsIn(c.Args), func(s string) bool { return !strings.Contains(s, "://") })
}

// textsIn returns the texts and numbers in arguments, which are JSON.
func textsIn(args string) (all []string) {
	var values map[string]any
	_ = json.Unmarshal([]byte(args), &values) // what is no object has none
	for _, v := range values {
		all = append(all, tools.TextsOf(v)...)
	}
	return all
}

// vouches reports whether text, which a network attributes to the agent, is in
// what the agent said here in trusted turns. What was said elsewhere, or is not
// shown any more, may have been the text of a page.
func (v *View) vouches(text string) bool {
	text = tools.Letters(text) // networks show Markdown in their own ways
	if text == "" {
		return true
	}
	for i := range v.entries {
		e := &v.entries[i]
		if e.untrusted() || e.Role != llm.Assistant {
			continue
		}
		said := []string{e.Text}
		for _, c := range e.Calls {
			said = append(said, textsIn(c.Args)...)
		}
		if slices.ContainsFunc(said, func(s string) bool { return strings.Contains(tools.Letters(s), text) }) {
			return true
		}
	}
	return false
}
