package agent

import (
	"cmp"
	"slices"
	"strings"

	"parley/llm"
	"parley/tools"
)

const (
	keepResults = 10  // tool results that are shortened last (D-045)
	shortResult = 500 // characters: shorter results are not worth shortening (D-045)
	resultShare = 3   // a result takes no more than the third part of a history that does not fit
)

// estimate returns about how many tokens m takes: a quarter of its bytes,
// which ratios corrects for each model.
func estimate(m llm.Message) int {
	n := len(m.Text) + len(m.Reasoning)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Args) + 16
	}
	return n/4 + 4
}

// Size returns the estimated tokens of h.
func (h *history) Size() int {
	n := h.SummarySize()
	for i := range h.entries {
		n += h.sizeOf(&h.entries[i])
	}
	return n
}

// SummarySize returns the estimated tokens of the summary, 0 if there is none.
func (h *history) SummarySize() int {
	if h.summed.Text == "" {
		return 0
	}
	return estimate(h.summed.message())
}

func (h *history) sizeOf(e *entry) int {
	n := estimate(e.Message)
	if h.eyes {
		n += len(e.pictures) * pictureTokens
	}
	return n
}

// Fit makes h no larger than limit estimated tokens. It leaves h alone while
// it fits, and then frees room for a good while, so that the beginning of the
// requests stays the same from turn to turn and prompt caches hit. The middle
// of outsized tool results goes first, then old results, then old turns, then old
// rounds of this turn, and then the middle of what is too long; a call is never
// parted from its result.
func (h *history) Fit(limit int, light func(tool string) bool) {
	if h.Size() <= limit {
		return
	}
	h.cutResults(limit)
	target := limit * 7 / 10
	h.shorten(target, keepResults, light)
	if h.Size() > limit {
		h.dim(1)
	}
	if h.Size() > limit {
		h.forget(target)
		h.shorten(limit, 1, func(string) bool { return true })
		h.skipRounds(limit)
		h.squeeze(limit)
	}
}

// light returns a function that says whether old results of a tool in k are
// shortened first (D-045): those it could get again, and those of programs.
func light(k *tools.Kit) func(tool string) bool {
	return func(tool string) bool {
		known, _ := k.Tool(tool)
		tool = cmp.Or(known.AliasOf, known.Name, tool)
		return known.ReadOnly || tool == "exec" || tool == "execute_python"
	}
}

// cutResults leaves out the middle of results so large that others would have to go for them.
func (h *history) cutResults(limit int) {
	most := limit / resultShare
	for i := range h.entries {
		if e := &h.entries[i]; e.Role == llm.ToolRole && estimate(e.Message) > most {
			e.Text, e.key = cutResult(e.Text, (most-4)*4), ""
		}
	}
}

// cutResult returns the beginning and the end of a result, about most bytes, and
// says between them what is missing. What is left is of whom it was.
func cutResult(text string, most int) string {
	part := max(most-len(wordsCutResult), 0) / 2
	return strings.ToValidUTF8(text[:part], "") + wordsCutResult + strings.ToValidUTF8(text[len(text)-part:], "")
}

// shorten empties the oldest results of the tools that light names until h is
// no larger than target, but keeps the most recent ones.
func (h *history) shorten(target, keep int, light func(tool string) bool) {
	var results []*entry
	for i := range h.entries {
		if e := &h.entries[i]; e.Role == llm.ToolRole && light(e.Name) {
			results = append(results, e)
		}
	}
	size := h.Size()
	for _, e := range results[:max(0, len(results)-keep)] {
		if size <= target {
			return
		}
		if len(e.Text) < shortResult {
			continue
		}
		size -= h.sizeOf(e)
		e.Text, e.key = omitted(e.Name), ""
		e.sources = nil
		size += h.sizeOf(e)
	}
}

// omitted stands for an old result of a tool (D-045).
func omitted(tool string) string { return "[" + tool + " result omitted from context]" }

// OmittedResults returns how many results were left out for want of room.
func (h *history) OmittedResults() (n int) {
	for i := range h.entries {
		if e := &h.entries[i]; e.Role == llm.ToolRole && e.Text == omitted(e.Name) {
			n++
		}
	}
	return n
}

// forget drops the oldest turns until h is no larger than target, but never the last one.
func (h *history) forget(target int) {
	size, cut, keep := h.Size(), 0, h.turnStart()
	for i := range h.entries[:keep+min(1, len(h.entries))] {
		if h.entries[i].first {
			cut = i
			if size <= target {
				break
			}
		}
		size -= h.sizeOf(&h.entries[i])
	}
	h.entries = slices.Clone(h.entries[cut:])
}

// skipRounds drops the oldest rounds of the last turn, answers with their
// results, until h is no larger than limit, but keeps the last round.
func (h *history) skipRounds(limit int) {
	size, last := h.Size(), 0
	for i, e := range h.entries {
		if e.Role == llm.Assistant {
			last = i
		}
	}
	kept, skip := h.entries[:0], false
	for i, e := range h.entries {
		if e.Role == llm.Assistant {
			skip = i < last && size > limit
		}
		if skip && e.heard == "" {
			size -= h.sizeOf(&e)
		} else {
			kept = append(kept, e)
		}
	}
	h.entries = kept
}

// squeeze leaves out the middle of the longest messages until h is no larger than limit.
func (h *history) squeeze(limit int) {
	if h.Size() > limit {
		h.dim(0)
	}
	for most := limit; h.Size() > limit && most > 16; most /= 2 {
		if estimate(h.summed.message()) > most {
			h.summed.Text = clip(h.summed.Text, most*4)
		}
		for i := range h.entries {
			if e := &h.entries[i]; h.sizeOf(e) > most {
				e.Text, e.Reasoning, e.key = clip(e.Text, most*4), "", ""
			}
		}
	}
}

// Request returns h as a model is shown it: fitted as how says, and healed
// (P25). show loads pictures, the latest first; without it there are none to be
// seen. Nothing else makes requests, so that one can be made again.
func (h *history) Request(how asked, light func(tool string) bool, show func(paths []string) []llm.Image) []llm.Message {
	h.eyes = how.Eyes
	for _, limit := range how.Limits {
		h.Fit(limit, light)
	}
	ms := make([]llm.Message, len(h.entries), len(h.entries)+2)
	for i, e := range slices.Backward(h.entries) {
		ms[i] = e.Message
		if show != nil && len(e.pictures) > 0 {
			ms[i].Images = show(e.pictures)
		}
		ms[i].Text = unseen(e.Text, len(e.pictures)+e.dimmed-len(ms[i].Images))
		if e.read && !illustrated(ms[i]) {
			ms[i].Role = llm.ToolRole // of no call: it is left out
		}
	}
	if h.summed.Text != "" {
		ms = slices.Insert(ms, 0, h.summed.message())
	}
	if how.Note != "" {
		ms = append(ms, llm.Message{Role: llm.User, Text: how.Note})
	}
	return heal(ms)
}
