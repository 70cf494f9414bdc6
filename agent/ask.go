package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/store"
	"parley/tools"
)

// squeezes is how often a request that was too long is made shorter.
const squeezes = 3

// ask makes one request of the model and returns what is to be kept of it and
// of the answer. With last it gets no tools, so that a person always gets one.
func (t *turn) ask(ctx context.Context, last bool) (record, error) {
	t.doing(t.Texts.Doing.Thinking)
	system, err := t.system(ctx)
	if err != nil {
		return record{}, err
	}
	req := llm.Request{System: system}
	if t.tools == nil {
		t.tools = t.noteTools(ctx, toolTextOf(t.kit))
	}
	how := asked{
		System: t.noteSystem(ctx, system), Tools: t.tools.digest, Last: last,
		Since: t.session.since, Note: t.openTurn().Note(), Eyes: t.model.Vision,
	}
	if !last {
		req.Tools = t.tools.Specs
	} else if len(t.openTurn().Answers()) > 0 {
		how.Note = joined(how.Note, wordsLastRound)
	}
	fixed := fixedSize(req)
	limit := t.room(fixed)
	if err := t.sumUp(ctx, max(limit, 256)); err != nil {
		return record{}, err
	}
	for try := 0; ; try++ {
		how.Limits = append(how.Limits, max(limit, 256))
		now := how
		now.Limits = how.Limits[try:]
		share, err := t.waitForPictures(ctx, how.Refused)
		if err != nil {
			return record{}, err
		}
		answer, hadPictures, err := t.generate(ctx, req, now, share)
		how.Untrusted = t.session.history.Untrusted()
		var e *llm.Error
		switch {
		case errors.As(err, &e) && e.Kind == llm.TooLong && try < squeezes:
			limit = min(limit, t.session.history.Size()) * 3 / 4
			continue
		case e != nil && e.Kind == llm.BadRequest && !how.Refused && hadPictures:
			how.Refused = true
			continue
		}
		t.session.since = nil
		if err != nil && (ctx.Err() != nil || e != nil && slices.Contains([]llm.Kind{llm.Cut, llm.TimedOut}, e.Kind)) {
			// It was at work, and nobody says how much (R-S15).
			t.pay(ctx, 0, t.name, llm.Usage{In: fixed + t.session.history.Size(), Out: len(t.part) / 4})
		}
		if err != nil {
			t.session.Keep(record{Asked: &how})
			t.live.settle(nil)
			return record{}, err
		}
		t.ratios.learn(t.name, fixed+t.session.history.Size(), answer.Usage.In)
		t.part = ""
		t.holds.back(t.name)
		answer.Role = llm.Assistant
		return record{Asked: &how, Said: &answer}, nil
	}
}

// generate makes the request that req begins and how completes, with share bytes
// of pictures, which it gives back. It says whether the model was shown any.
func (t *turn) generate(ctx context.Context, req llm.Request, how asked, share int64) (answer llm.Message, hadPictures bool, err error) {
	defer t.pictures.Release(share)
	req.Messages = t.session.history.Request(how, light(t.kit), t.album(share))
	hadPictures = slices.ContainsFunc(req.Messages, illustrated)
	answer, err = t.model.Generate(ctx, req, t.stream())
	return answer, hadPictures, err
}

// room returns how many estimated tokens there are for what was said, beside
// fixed ones for what no fitting makes shorter.
func (t *turn) room(fixed int) int {
	return int(float64(t.model.Window-t.model.MaxTokens)*0.95/t.ratios.of(t.name)) - fixed
}

func illustrated(m llm.Message) bool { return len(m.Images) > 0 }

// fixedSize returns the estimated tokens of what no fitting makes shorter.
func fixedSize(req llm.Request) int {
	n := len(req.System)
	for _, s := range req.Tools {
		n += len(s.Name) + len(s.Description) + len(s.Schema)
	}
	return n / 4
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

// stream returns a function that shows an answer while it comes in.
func (t *turn) stream() func(llm.Delta) {
	t.part = ""
	o := t.openTurn()
	before := joined(o.Notice(), o.Text())
	if n := len(o.Answers()); before != "" && (n == 0 || o.Answers()[n-1].Finish != llm.Length) {
		before += "\n\n"
	}
	var b strings.Builder
	coming := arrivals{turn: t}
	return func(d llm.Delta) {
		if d.Reset {
			b.Reset()
			coming.calls = nil
		}
		if d.Call != nil {
			coming.news(*d.Call)
		}
		if b.WriteString(d.Text); d.Text == "" {
			return
		}
		t.part = b.String()
		t.live.Show(before + t.part)
	}
}

// digestOf names a long text of requests.
func digestOf(text string) string { return fmt.Sprintf("%.12x", sha256.Sum256([]byte(text))) }

// note keeps body under digest, once. That it could not is no reason to leave a
// person without an answer.
func (p *Pool) note(ctx context.Context, digest, body string) (kept bool) {
	_, _, err := p.prompts.Get(ctx, digest)
	if err != nil {
		_, err = p.prompts.Put(ctx, digest, []byte(body), store.Any)
	}
	if err != nil {
		p.Log.Warn("what a model is told was not kept", "digest", digest, "err", err)
	}
	return err == nil
}

// noteSystem notes instructions and returns their digest. Most sessions have a
// last paragraph of their own: what is before it is kept once for all of them,
// and is named.
func (p *Pool) noteSystem(ctx context.Context, text string) string {
	digest := digestOf(text)
	if _, _, err := p.prompts.Get(ctx, digest); err != nil {
		last := max(strings.LastIndex(text, "\n\n"), 0)
		head := digestOf(text[:last])
		_ = p.note(ctx, head, text[:last]) && p.note(ctx, digest, parted+head+text[last:])
	}
	return digest
}

const parted = "\x00" // begins what noteSystem keeps

// prompt returns what was noted.
func (p *Pool) prompt(ctx context.Context, digest string) (string, error) {
	body, _, err := p.prompts.Get(ctx, digest)
	rest, system := strings.CutPrefix(string(body), parted)
	if err != nil || !system || len(rest) < len(digest) {
		return string(body), err
	}
	head, _, err := p.prompts.Get(ctx, rest[:len(digest)])
	return string(head) + rest[len(digest):], err
}

// noteTools notes the tools of a turn, which it returns with their digest.
// Turns mostly have the same: to compare takes less time than to write them down.
func (p *Pool) noteTools(ctx context.Context, text *toolText) *toolText {
	if last := p.told.Load(); last != nil && last.same(text) {
		text.digest = last.digest
		return text
	}
	b, _ := json.Marshal(text) // a schema is JSON
	text.digest = digestOf(string(b))
	if p.note(ctx, text.digest, string(b)) {
		p.told.Store(text)
	}
	return text
}

// same says whether text and other would be written down alike.
func (text *toolText) same(other *toolText) bool {
	alike := func(a, b llm.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
	}
	return slices.Equal(text.Known, other.Known) && slices.EqualFunc(text.Specs, other.Specs, alike)
}

// toolTextOf returns what is kept of the tools in k.
func toolTextOf(k *tools.Kit) *toolText {
	text := &toolText{Specs: k.Specs()}
	for _, t := range k.Tools() {
		text.Known = append(text.Known, stub{Name: t.Name, AliasOf: t.AliasOf, ReadOnly: t.ReadOnly, Last: t.Last, JSON: t.JSON})
	}
	return text
}
