// Package observe measures the house from outside: it wraps models, tools and
// the doors, counts for Prometheus what passes, and tells a tracer.
//
// What people say never becomes a label or an attribute. Every label has a
// bounded set of values: those that the config or the code names, and "other".
package observe

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"parley/chat"
)

// Config is what an Observer needs. All of it is optional.
type Config struct {
	// Tracer is told of the spans. nil is OpenTelemetry's global one: nobody, until
	// an SDK is set there or its automatic instrumentation attaches to the process.
	Tracer trace.TracerProvider
	Build  string // the version of this program
}

// An Observer measures. Its methods may be called by many goroutines.
type Observer struct {
	registry *prometheus.Registry
	tracer   trace.Tracer

	running           prometheus.Gauge
	turnTime, commits prometheus.Observer

	turns, messages, redelivered, parked, calls, rounds, retries, tokens, failures *prometheus.CounterVec
	delivery, callTime, roundTime                                                  *prometheus.HistogramVec

	mu    sync.Mutex
	known map[string]bool // names of tools that are labels
}

// Buckets of the histograms, in seconds.
var (
	quick = []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10}
	slow  = []float64{.1, .3, 1, 3, 10, 30, 60, 120, 300, 600}
)

// New returns an Observer with a registry of its own.
func New(c Config) *Observer {
	if c.Tracer == nil {
		c.Tracer = otel.GetTracerProvider()
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := maker{promauto.With(registry)}
	m.gauge("build_info", "Always 1; the labels tell the build.", prometheus.Labels{"version": c.Build, "go": runtime.Version()}).Set(1)
	return &Observer{
		registry: registry, tracer: c.Tracer.Tracer("parley"), known: map[string]bool{},

		turns:       m.counter("turns_total", "Turns that ended, by how.", "outcome"),
		turnTime:    m.histogram("turn_seconds", "Time from the beginning of a turn to its end.", slow).WithLabelValues(),
		running:     m.gauge("turns_running", "Turns under way.", nil),
		messages:    m.counter("messages_total", "Messages that came in, those that came again included.", "channel", "outcome"),
		delivery:    m.histogram("delivery_seconds", "Time from the outbox to the network.", slow, "channel"),
		redelivered: m.counter("delivery_retries_total", "Tries to send a reply after the first.", "channel"),
		parked:      m.counter("deliveries_parked_total", "Replies that could not be sent and were put aside.", "channel"),
		commits:     m.histogram("store_commit_seconds", "Time of a commit of the store to the disk.", quick).WithLabelValues(),
		calls:       m.counter("tool_calls_total", "Calls of tools, by how they ended.", "tool", "outcome"),
		callTime:    m.histogram("tool_seconds", "Time of a call.", slow, "tool"),
		rounds:      m.counter("model_rounds_total", "Requests that a model answered or failed to, tries not counted.", "model"),
		retries:     m.counter("model_retries_total", "Tries after the first one of a round.", "model"),
		tokens:      m.counter("model_tokens_total", "Tokens of requests (in), of these read from the provider's cache (cached), and of answers (out).", "model", "direction"),
		failures:    m.counter("model_errors_total", "Rounds that ended without an answer, by kind.", "model", "kind"),
		roundTime:   m.histogram("model_seconds", "Time of a round, tries and pauses included.", slow, "model"),
	}
}

// Handler serves the metrics. Who may read them is up to the caller.
func (o *Observer) Handler() http.Handler {
	return promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4})
}

// A maker makes metrics and registers them.
type maker struct{ promauto.Factory }

func (m maker) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return m.NewCounterVec(prometheus.CounterOpts{Name: "parley_" + name, Help: help}, labels)
}

func (m maker) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return m.NewHistogramVec(prometheus.HistogramOpts{Name: "parley_" + name, Help: help, Buckets: buckets}, labels)
}

func (m maker) gauge(name, help string, labels prometheus.Labels) prometheus.Gauge {
	return m.NewGauge(prometheus.GaugeOpts{Name: "parley_" + name, Help: help, ConstLabels: labels})
}

// Begun notes that a turn which answers m began in session s. The turn is to
// run under the context that is returned, and to call end once, with one of
// the outcomes "answered", "stopped", "failed", "parked", "too old" and "over the limit".
func (o *Observer) Begun(ctx context.Context, s chat.SessionID, m chat.Message) (_ context.Context, end func(outcome string)) {
	began := time.Now()
	o.running.Inc()
	ctx, span := o.tracer.Start(ctx, "turn", trace.WithAttributes(
		attribute.String("gen_ai.conversation.id", string(s)), attribute.String("parley.channel", m.At.Channel)))
	return ctx, func(outcome string) {
		o.running.Dec()
		o.turnTime.Observe(time.Since(began).Seconds())
		if !slices.Contains([]string{"answered", "stopped", "failed", "parked", "too old", "over the limit"}, outcome) {
			outcome = "other"
		}
		o.turns.WithLabelValues(outcome).Inc()
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
		o.messages.WithLabelValues(m.At.Channel, outcome).Inc()
		return err
	}
}

// Sent notes that a reply left the outbox of channel after it waited there, at
// that try. With err it was parked.
func (o *Observer) Sent(channel string, _ chat.Reply, waited time.Duration, tries int, err error) {
	o.redelivered.WithLabelValues(channel).Add(float64(max(tries-1, 0)))
	if err != nil {
		o.parked.WithLabelValues(channel).Inc()
		return
	}
	o.delivery.WithLabelValues(channel).Observe(waited.Seconds())
}

// Committed notes that a commit of the store took so long.
func (o *Observer) Committed(took time.Duration) { o.commits.Observe(took.Seconds()) }

// A Queue says how much work waits or is under way somewhere.
type Queue struct {
	Name   string // one of a few: "inbox", "outbox/telegram", "parked"
	Depth  int
	Oldest time.Duration // age of the oldest piece of work
}

// Queues has read called whenever somebody reads the metrics, also by several
// goroutines at a time. It may be called once; each queue has a name of its own.
func (o *Observer) Queues(read func(context.Context) []Queue) { o.registry.MustRegister(queues(read)) }

// queues are a prometheus.Collector.
type queues func(context.Context) []Queue

var (
	depth  = prometheus.NewDesc("parley_queue_depth", "Pieces of work that wait or are under way.", []string{"queue"}, nil)
	oldest = prometheus.NewDesc("parley_queue_oldest_seconds", "Age of the oldest piece of work.", []string{"queue"}, nil)
)

func (q queues) Describe(ch chan<- *prometheus.Desc) {
	ch <- depth
	ch <- oldest
}

const readTime = 5 * time.Second // for all queues together

func (q queues) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	for _, of := range q(ctx) {
		ch <- prometheus.MustNewConstMetric(depth, prometheus.GaugeValue, float64(of.Depth), of.Name)
		ch <- prometheus.MustNewConstMetric(oldest, prometheus.GaugeValue, of.Oldest.Seconds(), of.Name)
	}
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
