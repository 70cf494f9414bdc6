package conversation

import (
	"cmp"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

const (
	keepResults = 10  // number of tool results that are shortened last (D-045)
	shortResult = 500 // characters; shorter results are not worth shortening (D-045)
	resultShare = 3   // one result takes at most a third of a history that does not fit
)

// A View is what a model is shown of a conversation: a summary of the oldest
// turns, and the messages after them.
type View struct {
	summary Summary
	entries Entries
	vision  bool // the model is shown pictures
}

// EntryCount returns how many messages the model is shown.
func (v *View) EntryCount() int { return len(v.entries) }

// Size returns the estimated tokens of v.
func (v *View) Size() int {
	n := v.SummarySize()
	for i := range v.entries {
		n += v.sizeOf(&v.entries[i])
	}
	return n
}

// SummarySize returns the estimated tokens of the summary, 0 if there is none.
func (v *View) SummarySize() int {
	if v.summary.Text == "" {
		return 0
	}
	return v.summary.message().EstimateTokens()
}

func (v *View) sizeOf(e *Entry) int {
	n := e.Message.EstimateTokens()
	if v.vision {
		n += len(e.pictures) * pictureTokens
	}
	return n
}

// Fit makes v no larger than limit estimated tokens. A view that fits is left
// alone, and one that does not is cut well below the limit, so that the beginning
// of the requests stays the same from turn to turn and prompt caches hit. The
// middle of outsized tool results goes first, then old results of the tools that
// light names, old turns, old rounds of this turn, and the middle of what is too
// long. A call is never parted from its result.
func (v *View) Fit(limit int, light func(tool string) bool) {
	if v.Size() <= limit {
		return
	}
	v.cutResults(limit)
	target := limit * 7 / 10
	v.shorten(target, keepResults, light)
	if v.Size() > limit {
		v.dim(1)
	}
	if v.Size() > limit {
		v.forget(target)
		v.shorten(limit, 1, func(string) bool { return true })
		v.skipRounds(limit)
		v.squeeze(limit)
	}
}

// ShortenedFirst returns a function that reports whether old results of a tool in
// k are shortened first (D-045): those it could get again, and those of programs.
func ShortenedFirst(k *tools.Kit) func(tool string) bool {
	return func(tool string) bool {
		known, _ := k.Tool(tool)
		tool = cmp.Or(known.AliasOf, known.Name, tool)
		return known.ReadOnly || tool == "exec" || tool == "execute_python"
	}
}

// cutResults leaves out the middle of results so large that others would have to
// make room for them.
func (v *View) cutResults(limit int) {
	most := limit / resultShare
	for i := range v.entries {
		if e := &v.entries[i]; e.Role == llm.ToolRole && e.Message.EstimateTokens() > most {
			e.Text, e.key = cutResult(e.Text, (most-4)*4), ""
		}
	}
}

// cutResult returns the beginning and the end of a result, about most bytes, and
// says between them what is missing. What is left keeps its origin.
func cutResult(text string, most int) string {
	part := max(most-len(msgCutResult), 0) / 2
	return strings.ToValidUTF8(text[:part], "") + msgCutResult + strings.ToValidUTF8(text[len(text)-part:], "")
}

// shorten empties the oldest results of the tools that light names until v is
// no larger than target, but keeps the most recent ones.
func (v *View) shorten(target, keep int, light func(tool string) bool) {
	var results []*Entry
	for i := range v.entries {
		if e := &v.entries[i]; e.Role == llm.ToolRole && light(e.Name) {
			results = append(results, e)
		}
	}
	size := v.Size()
	for _, e := range results[:max(0, len(results)-keep)] {
		if size <= target {
			return
		}
		if len(e.Text) < shortResult {
			continue
		}
		size -= v.sizeOf(e)
		e.Text, e.key = omitted(e.Name), ""
		e.sources = nil
		size += v.sizeOf(e)
	}
}

// omitted returns what stands in place of an old result of a tool (D-045).
func omitted(tool string) string { return "[" + tool + " result omitted from context]" }

// OmittedResults returns how many results were left out for want of room.
func (v *View) OmittedResults() (n int) {
	for i := range v.entries {
		if e := &v.entries[i]; e.Role == llm.ToolRole && e.Text == omitted(e.Name) {
			n++
		}
	}
	return n
}

// forget drops the oldest turns until v is no larger than target, but never the last one.
func (v *View) forget(target int) {
	size, keep := v.Size(), v.turnStart()
	cut := 0
	for i := range v.entries[:keep+min(1, len(v.entries))] {
		if v.entries[i].first {
			cut = i
			if size <= target {
				break
			}
		}
		size -= v.sizeOf(&v.entries[i])
	}
	v.entries = slices.Clone(v.entries[cut:])
}

// skipRounds drops the oldest rounds of the last turn, answers with their
// results, until v is no larger than limit, but keeps the last round.
func (v *View) skipRounds(limit int) {
	size, last := v.Size(), 0
	for i, e := range v.entries {
		if e.Role == llm.Assistant {
			last = i
		}
	}
	kept, skip := v.entries[:0], false
	for i, e := range v.entries {
		if e.Role == llm.Assistant {
			skip = i < last && size > limit
		}
		if skip && e.heard == "" {
			size -= v.sizeOf(&e)
		} else {
			kept = append(kept, e)
		}
	}
	v.entries = kept
}

// squeeze leaves out the middle of the longest messages until v is no larger than limit.
func (v *View) squeeze(limit int) {
	if v.Size() > limit {
		v.dim(0)
	}
	for most := limit; v.Size() > limit && most > 16; most /= 2 {
		if v.summary.message().EstimateTokens() > most {
			v.summary.Text = chat.ClipMiddle(v.summary.Text, most*4)
		}
		for i := range v.entries {
			if e := &v.entries[i]; v.sizeOf(e) > most {
				e.Text = chat.ClipMiddle(e.Text, most*4)
				e.Reasoning = ""
				e.key = ""
			}
		}
	}
}

// Size returns the estimated tokens of what the model is shown.
func (h *History) Size() int { return h.view.Size() }

// Messages returns h as a model is shown it: fitted as how says, and healed
// (P25). show loads pictures, the latest first; if it is nil none are shown.
// Nothing else makes requests, so that each can be made again from the log.
func (h *History) Messages(
	how Request, light func(tool string) bool, show func(paths []string) []llm.Image,
) []llm.Message {
	h.view.vision = how.Eyes
	for _, limit := range how.Limits {
		h.view.Fit(limit, light)
	}
	ms := make([]llm.Message, len(h.view.entries), len(h.view.entries)+2)
	for i, e := range slices.Backward(h.view.entries) {
		ms[i] = e.Message
		if show != nil && len(e.pictures) > 0 {
			ms[i].Images = show(e.pictures)
		}
		ms[i].Text = unseen(e.Text, len(e.pictures)+e.dimmed-len(ms[i].Images))
		if e.read && !ShowsPictures(ms[i]) {
			ms[i].Role = llm.ToolRole // of no call: it is left out
		}
	}
	if h.view.summary.Text != "" {
		ms = slices.Insert(ms, 0, h.view.summary.message())
	}
	if how.Note != "" {
		ms = append(ms, llm.Message{Role: llm.User, Text: how.Note})
	}
	return heal(ms)
}

// turnStart returns the index of the entry that began the open turn, or the last
// one if none is open.
func (v *View) turnStart() int {
	for i := len(v.entries) - 1; i >= 0; i-- {
		if v.entries[i].first {
			return i
		}
	}
	return 0
}
