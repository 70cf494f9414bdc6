package agent

import (
	"context"
	"errors"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/agent/live"
	"parley/llm"
)

// maxShortenings is how often a request that was too long is made shorter.
const maxShortenings = 3

// ask makes one request of the model and returns what is to be kept of it and
// of the answer. With last it gets no tools, so that a person always gets one.
func (t *turn) ask(ctx context.Context, last bool) (conversation.Record, error) {
	t.doing(t.pool.texts.Doing.Thinking)
	system, err := t.system(ctx)
	if err != nil {
		return conversation.Record{}, err
	}
	want := t.openTurn().First().Wanted()
	req := llm.Request{System: system, MaxTokens: min(want.MaxTokens, t.model.MaxTokens), Format: want.Format}
	if t.toolSet == nil {
		t.toolSet = t.pool.prompts.KeepTools(ctx, t.kit)
	}
	how := conversation.Request{
		System: t.pool.prompts.KeepSystem(ctx, system), Tools: t.toolSet.Digest, Last: last,
		Since: t.session.ReadSince, Note: t.openTurn().Note(), Eyes: t.model.Vision,
	}
	if !last {
		req.Tools = t.toolSet.Specs
	} else if len(t.openTurn().Answers()) > 0 {
		how.Note = conversation.Join(how.Note, msgLastRound)
	}
	fixed := req.EstimateFixedTokens()
	limit := t.model.room(t.pool.ratios.Of(t.name), fixed)
	if err := t.summaries.MakeRoom(ctx, t.worker.hard, max(limit, 256)); err != nil {
		return conversation.Record{}, err
	}
	for try := 0; ; try++ {
		how.Limits = append(how.Limits, max(limit, 256))
		now := how
		now.Limits = how.Limits[try:]
		share, err := t.reservePictures(ctx, how.Refused)
		if err != nil {
			return conversation.Record{}, err
		}
		answer, hadPictures, err := t.generate(ctx, req, now, share)
		how.Untrusted = t.session.History.Untrusted()
		var e *llm.Error
		switch {
		case errors.As(err, &e) && e.Kind == llm.TooLong && try < maxShortenings:
			limit = min(limit, t.session.History.Size()) * 3 / 4
			continue
		case e != nil && e.Kind == llm.BadRequest && !how.Refused && hadPictures:
			how.Refused = true
			continue
		}
		t.session.ReadSince = nil
		if llm.WasInterrupted(ctx, err) { // R-S15
			t.charge(ctx, 0, t.name, llm.Usage{In: fixed + t.session.History.Size(), Out: len(t.part) / 4})
		}
		if err != nil {
			t.session.Keep(conversation.Record{Asked: &how})
			t.live.DropIncoming(nil)
			return conversation.Record{}, err
		}
		t.pool.ratios.Learn(t.name, fixed+t.session.History.Size(), answer.Usage.In)
		t.part = ""
		t.pool.suspended.ModelIsBack(t.name)
		answer.Role = llm.Assistant
		return conversation.Record{Asked: &how, Said: &answer}, nil
	}
}

// generate makes the request that req begins and how completes, with share bytes
// of pictures, which it gives back. It reports whether the model was shown any.
func (t *turn) generate(
	ctx context.Context, req llm.Request, how conversation.Request, share int64,
) (answer llm.Message, hadPictures bool, err error) {
	defer t.pool.album.Release(share)
	req.Messages = t.session.History.Messages(how, conversation.ShortenedFirst(t.kit), t.pool.album.Loader(share))
	hadPictures = slices.ContainsFunc(req.Messages, conversation.ShowsPictures)
	answer, err = t.model.Generate(ctx, req, t.stream())
	return answer, hadPictures, err
}

// reservePictures waits until the pictures that the next request is to show fit in
// beside those of the requests under way, and returns how many bytes it reserves:
// 0 if the model is shown none. The turn holds them only while the model answers.
func (t *turn) reservePictures(ctx context.Context, refused bool) (bytes int64, err error) {
	if refused || !t.model.Vision {
		return 0, nil
	}
	waited := false
	bytes, err = t.pool.album.Reserve(ctx, t.session.History.Pictures(), func() {
		waited = true
		t.doing(t.pool.texts.Doing.Turn)
	})
	if err != nil {
		return 0, err
	}
	if waited {
		t.doing(t.pool.texts.Doing.Thinking)
	}
	return bytes, nil
}

// stream returns a function that shows an answer while it comes in.
func (t *turn) stream() func(llm.Delta) {
	t.part = ""
	o := t.openTurn()
	before := conversation.Join(o.Notice(), o.Text())
	if n := len(o.Answers()); before != "" && (n == 0 || o.Answers()[n-1].Finish != llm.Length) {
		before += "\n\n"
	}
	var b strings.Builder
	coming := live.Incoming{View: t.live, Kit: t.kit, Before: o.AllAnswers()}
	return func(d llm.Delta) {
		if d.Reset {
			b.Reset()
			coming.Reset()
		}
		if d.Call != nil {
			coming.Add(*d.Call)
		}
		if b.WriteString(d.Text); d.Text == "" {
			return
		}
		t.part = b.String()
		t.live.Show(before + t.part)
	}
}
