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
func (o *Observer) Model(name string, m llm.Model) llm.Model {
	return llm.ModelFunc(func(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		ctx, span := o.tracer.Start(ctx, "chat "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", name)))
		began := time.Now()
		msg, err := m.Generate(context.WithValue(ctx, triesKey{}, new(int)), req, stream)
		o.rounds.counter(name).Inc()
		o.roundTime.histogram(name).Update(time.Since(began).Seconds())
		if err != nil {
			o.failures.counter(kindOf(err), name).Inc()
			finish(span, kindOf(err), true)
			return msg, err
		}
		for direction, n := range map[string]int{"in": msg.Usage.In, "out": msg.Usage.Out, "cached": msg.Usage.Cached} {
			o.tokens.counter(direction, name).Add(max(n, 0))
		}
		span.SetAttributes(
			attribute.String("gen_ai.response.model", msg.Model),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(msg.Finish)}),
			attribute.Int("gen_ai.usage.input_tokens", msg.Usage.In),
			attribute.Int("gen_ai.usage.output_tokens", msg.Usage.Out),
			attribute.Int("gen_ai.usage.cache_read.input_tokens", msg.Usage.Cached))
		finish(span, "", false)
		return msg, nil
	})
}

// triesKey is that of the tries of a round so far, a *int.
type triesKey struct{}

// Try counts the tries of m beyond the first of a round. It goes inside of
// llm.Retry: Model("x", llm.Retry(Try("x", m))).
func (o *Observer) Try(name string, m llm.Model) llm.Model {
	return llm.ModelFunc(func(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if tries, ok := ctx.Value(triesKey{}).(*int); ok {
			if *tries++; *tries > 1 {
				o.retries.counter(name).Inc()
				trace.SpanFromContext(ctx).AddEvent("retry")
			}
		}
		return m.Generate(ctx, req, stream)
	})
}
