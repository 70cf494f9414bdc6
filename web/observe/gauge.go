package observe

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Gauge is a level that is looked up when somebody reads the metrics.
type Gauge struct {
	Level Level
	Of    string // the queue of Depth and Oldest; it must be one of a few names
	Value float64
}

// A Level says what a Gauge measures.
type Level string

// The levels.
const (
	Depth   Level = "parley_queue_depth"          // pieces of work: "inbox", "outbox/telegram", "parked"
	Oldest  Level = "parley_queue_oldest_seconds" // age of the oldest of them
	Readers Level = "parley_stream_readers"       // connections that a page keeps open for news
)

var levels = map[Level]*prometheus.Desc{
	Depth:   prometheus.NewDesc(string(Depth), "Pieces of work that wait or are under way.", []string{"queue"}, nil),
	Oldest:  prometheus.NewDesc(string(Oldest), "Age of the oldest piece of work.", []string{"queue"}, nil),
	Readers: prometheus.NewDesc(string(Readers), "Connections kept open for live news.", nil, nil),
}

const readTime = 5 * time.Second // for all gauges together

// Collect has read called whenever somebody reads the metrics, also by several
// goroutines at a time. Of two gauges of the same level and name the later counts.
func (o *Observer) Collect(read func(ctx context.Context) []Gauge) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads = append(o.reads, read)
}

// pulled is the prometheus.Collector of what Collect was given.
type pulled struct{ o *Observer }

func (p pulled) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range levels {
		ch <- d
	}
}

func (p pulled) Collect(ch chan<- prometheus.Metric) {
	p.o.mu.Lock()
	reads := p.o.reads[:len(p.o.reads):len(p.o.reads)]
	p.o.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	all := map[Gauge]float64{} // by Level and Of
	for _, read := range reads {
		for _, g := range read(ctx) {
			all[Gauge{Level: g.Level, Of: g.Of}] = g.Value
		}
	}
	for g, value := range all {
		switch {
		case levels[g.Level] == nil:
		case g.Level == Readers:
			ch <- prometheus.MustNewConstMetric(levels[g.Level], prometheus.GaugeValue, value)
		default:
			ch <- prometheus.MustNewConstMetric(levels[g.Level], prometheus.GaugeValue, value, g.Of)
		}
	}
}
