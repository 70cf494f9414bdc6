package observe

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
