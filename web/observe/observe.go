// Package observe measures the gateway from outside: it wraps models, tools and
// the delivery of messages, counts for Prometheus, and reports spans to a tracer.
//
// What people say never becomes a label or an attribute. Every label has a
// bounded set of values: those that the config or the code names, and "other".
package observe

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"parley/chat"
	"parley/web/traffic"
)

// Config is what an Observer needs. All of it is optional.
type Config struct {
	// Tracer receives the spans. nil is OpenTelemetry's global one, which drops them
	// until an SDK is set there or its automatic instrumentation attaches to the process.
	Tracer trace.TracerProvider
	Build  string // the version of this program
}

// An Observer measures. Its methods may be called concurrently.
type Observer struct {
	tracer   trace.Tracer
	families families
	traffic  *traffic.Counter

	running    *metrics.Gauge
	turnTime   *histogram
	commitTime *histogram

	turns       *family
	messages    *family
	redelivered *family
	deadLetters *family
	removed     *family
	disk        *family
	calls       *family
	rounds      *family
	retries     *family
	tokens      *family
	failures    *family
	delivery    *family
	callTime    *family
	roundTime   *family

	readQueues func(context.Context) []Queue

	mu    sync.Mutex
	known map[string]bool // names of tools that are labels
}

// Upper bounds of the histograms' buckets, in seconds.
var (
	commitBounds = []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10}
	workBounds   = []float64{.1, .3, 1, 3, 10, 30, 60, 120, 300, 600}
)

// New returns an Observer with metrics of its own.
func New(c Config) *Observer {
	if c.Tracer == nil {
		c.Tracer = otel.GetTracerProvider()
	}
	o := &Observer{tracer: c.Tracer.Tracer("parley"), known: map[string]bool{}, traffic: traffic.New()}
	all := &o.families
	all.gauge("build_info", "Always 1; the labels describe the build.", "go", "version").
		gauge(runtime.Version(), c.Build).
		Set(1)

	o.turns = all.counter("turns_total", "Turns that ended, by outcome.", "outcome")
	o.turnTime = all.histogram("turn_seconds", "Duration of a turn.", workBounds).histogram()
	o.running = all.gauge("turns_running", "Turns in progress.").gauge()
	o.messages = all.counter("messages_total", "Incoming messages, including redelivered ones.", "channel", "outcome")

	o.delivery = all.histogram("delivery_seconds", "Time from the outbox to the network.", workBounds, "channel")
	o.redelivered = all.counter("delivery_retries_total", "Attempts to send a reply after the first.", "channel")
	o.deadLetters = all.counter("deliveries_parked_total", "Replies that became dead letters.", "channel")
	o.removed = all.counter("retention_removed_total", "Entries removed because they were old, by part.", "part")
	o.disk = all.gauge("disk_bytes", "Space on disk, by part, as it was measured last.", "part")
	o.commitTime = all.histogram("store_commit_seconds", "Duration of a commit to disk.", commitBounds).histogram()

	o.calls = all.counter("tool_calls_total", "Tool calls, by outcome.", "outcome", "tool")
	o.callTime = all.histogram("tool_seconds", "Duration of a tool call.", workBounds, "tool")

	o.rounds = all.counter("model_rounds_total", "Model requests, retries not counted.", "model")
	o.retries = all.counter("model_retries_total", "Attempts of a model request after the first.", "model")
	o.tokens = all.counter("model_tokens_total",
		"Tokens of requests (in), of those read from the provider's cache (cached), and of answers (out).", "direction",
		"model")
	o.failures = all.counter("model_errors_total", "Model requests that failed, by kind.", "kind", "model")
	o.roundTime = all.histogram("model_seconds",
		"Duration of a model request, including retries and pauses.", workBounds, "model")
	return o
}

// Traffic returns what is counted for the dashboard.
func (o *Observer) Traffic() *traffic.Counter { return o.traffic }

const (
	maxScrapes      = 4 // handled at the same time
	readQueuesLimit = 5 * time.Second
)

// Handler serves the metrics. Access control is up to the caller.
func (o *Observer) Handler() http.Handler {
	slots := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, "too many requests for metrics at the same time", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		o.write(r.Context(), w)
	})
}

// write writes all metrics in Prometheus' text format.
func (o *Observer) write(ctx context.Context, w io.Writer) {
	for _, f := range slices.Concat(o.families, o.queueMetrics(ctx)) {
		f.write(w)
	}
	metrics.WriteProcessMetrics(w)
}

// Removed counts entries of a part of the store that were removed because they were old.
func (o *Observer) Removed(part string, entries int) {
	o.removed.counter(snakeCase(part)).Add(entries)
}

// Measured notes how much of the disk a part takes.
func (o *Observer) Measured(part string, bytes int64) {
	o.disk.gauge(snakeCase(part)).Set(float64(bytes))
}

// snakeCase returns the name of a part as labels spell it: "free_in_the_store".
func snakeCase(part string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(part))
}

// Begun notes that a turn which answers m began in session s. The turn is to
// run under the context that is returned, and to call end once, with one of
// the outcomes "answered", "stopped", "failed", "parked", "too old" and "over the limit".
func (o *Observer) Begun(
	ctx context.Context,
	s chat.SessionID,
	m chat.Message,
) (_ context.Context, end func(outcome string)) {
	began := time.Now()
	o.running.Inc()
	ctx, span := o.tracer.Start(ctx, "turn", trace.WithAttributes(
		attribute.String("gen_ai.conversation.id", string(s)), attribute.String("parley.channel", m.At.Channel)))
	return ctx, func(outcome string) {
		o.running.Dec()
		took := time.Since(began)
		o.turnTime.Update(took.Seconds())
		if outcome != "answered" || m.Origin != chat.FromPerson {
			took = 0
		}
		o.traffic.Turn(took, outcome == "failed")
		if !slices.Contains([]string{"answered", "stopped", "failed", "parked", "too old", "over the limit"}, outcome) {
			outcome = "other"
		}
		o.turns.counter(outcome).Inc()
		finish(span, outcome, outcome == "failed" || outcome == "parked")
	}
}

// Deliver counts what d takes, and what it does not.
func (o *Observer) Deliver(d chat.Deliver) chat.Deliver {
	return func(ctx context.Context, m chat.Message) error {
		err := d(ctx, m)
		outcome := "taken"
		if err != nil {
			outcome = "refused"
		}
		o.traffic.Message()
		o.messages.counter(m.At.Channel, outcome).Inc()
		return err
	}
}

// Sent notes that a reply left the outbox of channel after it waited there, at
// that try. With err it became a dead letter.
func (o *Observer) Sent(channel string, _ chat.Reply, waited time.Duration, tries int, err error) {
	o.redelivered.counter(channel).Add(max(tries-1, 0))
	if err != nil {
		o.deadLetters.counter(channel).Inc()
		return
	}
	o.delivery.histogram(channel).Update(waited.Seconds())
}

// Committed notes that a commit of the store took so long.
func (o *Observer) Committed(took time.Duration) { o.commitTime.Update(took.Seconds()) }

// A Queue is how much work waits or is in progress somewhere.
type Queue struct {
	Name   string // one of a few: "inbox", "outbox/telegram", "parked"
	Depth  int
	Oldest time.Duration // age of the oldest work
}

// Queues registers read, which is called for every request for the metrics,
// possibly concurrently. Call it at most once, before the Handler serves.
func (o *Observer) Queues(read func(context.Context) []Queue) { o.readQueues = read }

// queueMetrics returns the metrics of the queues as they are now.
func (o *Observer) queueMetrics(ctx context.Context) families {
	if o.readQueues == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readQueuesLimit)
	defer cancel()
	var all families
	depth := all.gauge("queue_depth", "Queued work, including what is in progress.", "queue")
	age := all.gauge("queue_oldest_seconds", "Age of the oldest queued work.", "queue")
	for _, q := range o.readQueues(ctx) {
		depth.gauge(q.Name).Set(float64(q.Depth))
		age.gauge(q.Name).Set(q.Oldest.Seconds())
	}
	return all
}

// finish ends span. The error's text may hold what somebody said, so only its
// kind is told.
func finish(span trace.Span, kind string, failed bool) {
	if failed {
		span.SetAttributes(attribute.String("error.type", kind))
		span.SetStatus(codes.Error, kind)
	}
	span.End()
}
