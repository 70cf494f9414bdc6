package observe

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"parley/llm"
)

// kinds are the labels of the errors that a model gives.
var kinds = map[llm.Kind]string{
	llm.Auth: "auth", llm.Quota: "quota", llm.BadRequest: "bad_request", llm.TooLong: "too_long",
	llm.RateLimited: "rate_limited",
	llm.Overloaded:  "overloaded", llm.Cut: "cut", llm.TimedOut: "timed_out", llm.Unreachable: "unreachable",
}

func kindOf(err error) string {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		if kind, ok := kinds[e.Kind]; ok {
			return kind
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "cancelled"
	}
	return "other"
}

// Model measures m, which config.json calls name. It goes around llm.Retry.
func (o *Observer) Model(name string, m llm.Model) llm.Model { return &measured{o, name, m} }

// A measured model tells the Observer of each round.
type measured struct {
	observer *Observer
	name     string
	model    llm.Model
}

// Generate implements [llm.Model].
func (m *measured) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
	ctx, span := m.observer.beginRound(ctx, m.name)
	began := time.Now()
	msg, err := m.model.Generate(context.WithValue(ctx, triesKey{}, new(int)), req, stream)
	m.observer.endRound(m.name, span, time.Since(began), &msg, err)
	return msg, err
}

// beginRound begins the span of a round of the model name.
func (o *Observer) beginRound(ctx context.Context, name string) (context.Context, trace.Span) {
	return o.tracer.Start(ctx, "chat "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", name)))
}

// endRound counts a round of the model name, which took so long, and ends its span. It is apart from
// Generate, whose stack is held while the model thinks.
func (o *Observer) endRound(name string, span trace.Span, took time.Duration, msg *llm.Message, err error) {
	o.rounds.counter(name).Inc()
	o.roundTime.histogram(name).Update(took.Seconds())
	if kind := kindOf(err); err == nil || kind == "cancelled" { // a person's doing, not the model's
		o.traffic.Request(name, "")
	} else {
		o.traffic.Request(name, kind)
	}
	if err != nil {
		o.failures.counter(kindOf(err), name).Inc()
		finish(span, kindOf(err), true)
		return
	}
	o.tokens.counter("in", name).Add(max(msg.Usage.In, 0))
	o.tokens.counter("out", name).Add(max(msg.Usage.Out, 0))
	o.tokens.counter("cached", name).Add(max(msg.Usage.Cached, 0))
	span.SetAttributes(
		attribute.String("gen_ai.response.model", msg.Model),
		attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(msg.Finish)}),
		attribute.Int("gen_ai.usage.input_tokens", msg.Usage.In),
		attribute.Int("gen_ai.usage.output_tokens", msg.Usage.Out),
		attribute.Int("gen_ai.usage.cache_read.input_tokens", msg.Usage.Cached))
	finish(span, "", false)
}

// triesKey is that of the tries of a round so far, a *int.
type triesKey struct{}

// Try counts the tries of m beyond the first of a round. It goes inside of
// llm.Retry: Model("x", llm.Retry(Try("x", m))).
func (o *Observer) Try(name string, m llm.Model) llm.Model { return &tried{o, name, m} }

type tried struct {
	observer *Observer
	name     string
	model    llm.Model
}

// Generate implements [llm.Model].
func (t *tried) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
	if tries, ok := ctx.Value(triesKey{}).(*int); ok {
		if *tries++; *tries > 1 {
			t.observer.retries.counter(t.name).Inc()
			trace.SpanFromContext(ctx).AddEvent("retry")
		}
	}
	return t.model.Generate(ctx, req, stream)
}
