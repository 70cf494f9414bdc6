package observe

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"parley/tools"
)

// outcomes are the labels of the codes of failures.
var outcomes = map[string]string{
	tools.CodeNotFound: "not_found", tools.CodeInvalid: "invalid", tools.CodeTimeout: "timeout",
	tools.CodeDenied: "denied", tools.CodeRefused: "refused",
	tools.CodeError: "error", tools.CodeCancelled: "cancelled",
}

// maxTools limits the tool names that become labels: external servers may invent new ones
// without end.
const maxTools = 200

// Tool measures every call. It goes first in the pipeline.
func (o *Observer) Tool() tools.Middleware {
	return func(t tools.Tool) tools.Tool {
		name, run := o.toolName(t), t.Run
		t.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
			ctx, span := o.tracer.Start(ctx, "execute_tool "+name, trace.WithAttributes(
				attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name),
				attribute.String("gen_ai.tool.type", "function"), attribute.String("gen_ai.tool.call.id", c.ID)))
			began := time.Now()
			r, err := run(ctx, c)
			outcome := outcomeOf(ctx, r, err)
			o.calls.counter(outcome, name).Inc()
			o.callTime.histogram(name).Update(time.Since(began).Seconds())
			finish(span, outcome, outcome != "ok")
			return r, err
		}
		return t
	}
}

// toolName returns the label of t. A Kit answers for a tool that it lacks, or
// that was called wrongly, by one that has a name only: the model's own, maybe.
func (o *Observer) toolName(t tools.Tool) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.Description != "" && len(o.known) < maxTools {
		o.known[t.Name] = true
	}
	if o.known[t.Name] {
		return t.Name
	}
	return "other"
}

func outcomeOf(ctx context.Context, r tools.Result, err error) string {
	switch {
	case err == nil && !r.Failed:
		return "ok"
	case ctx.Err() != nil:
		return "cancelled"
	case r.Code == "":
		return "error"
	}
	return cmp.Or(outcomes[r.Code], "other")
}
