package observe

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/metrics"
)

// prefix begins the name of every metric of ours.
const prefix = "parley_"

// A family is one metric with all its label values, such as parley_turns_total.
// Each has a set of its own, so that its help and type can be written once above
// its series. Its methods may be called concurrently.
type family struct {
	name   string // without prefix
	kind   string // counter, gauge or histogram
	help   string
	labels []string // in alphabetical order
	bounds []float64
	series *metrics.Set // of a counter or gauge

	mu         sync.Mutex
	histograms map[string]*histogram // by label pairs
}

// counter returns the counter with these label values, one for each label.
func (f *family) counter(values ...string) *metrics.Counter {
	return f.series.GetOrCreateCounter(f.seriesName(values))
}

// gauge returns the gauge with these label values, one for each label.
func (f *family) gauge(values ...string) *metrics.Gauge {
	return f.series.GetOrCreateGauge(f.seriesName(values), nil)
}

// histogram returns the histogram with these label values, one for each label.
func (f *family) histogram(values ...string) *histogram {
	f.mu.Lock()
	defer f.mu.Unlock()
	labels := f.labelPairs(values)
	h := f.histograms[labels]
	if h == nil {
		h = &histogram{bounds: f.bounds, counts: make([]int, len(f.bounds)+1)}
		f.histograms[labels] = h
	}
	return h
}

// seriesName returns the name of a series as the text format spells it.
func (f *family) seriesName(values []string) string {
	if len(f.labels) == 0 {
		return prefix + f.name
	}
	return prefix + f.name + "{" + f.labelPairs(values) + "}"
}

// labelPairs returns labels and values as the text format spells them between braces.
func (f *family) labelPairs(values []string) string {
	pairs := make([]string, len(f.labels))
	for i, label := range f.labels {
		pairs[i] = label + `="` + labelEscaper.Replace(strings.ToValidUTF8(values[i], "\uFFFD")) + `"`
	}
	return strings.Join(pairs, ",")
}

// labelEscaper escapes what the text format does not allow in a label value.
var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// write writes the family, unless it has no series yet.
func (f *family) write(w io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.series.ListMetricNames())+len(f.histograms) == 0 {
		return
	}
	fmt.Fprintf(w, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, f.name, f.help, prefix, f.name, f.kind)
	f.series.WritePrometheus(w)
	for _, labels := range slices.Sorted(maps.Keys(f.histograms)) {
		f.histograms[labels].write(w, prefix+f.name, labels)
	}
}

// families creates families and remembers them in order.
type families []*family

func (all *families) add(f *family) *family {
	f.series = metrics.NewSet()
	f.histograms = map[string]*histogram{}
	*all = append(*all, f)
	return f
}

func (all *families) counter(name, help string, labels ...string) *family {
	return all.add(&family{name: name, kind: "counter", help: help, labels: labels})
}

func (all *families) gauge(name, help string, labels ...string) *family {
	return all.add(&family{name: name, kind: "gauge", help: help, labels: labels})
}

func (all *families) histogram(name, help string, bounds []float64, labels ...string) *family {
	return all.add(&family{name: name, kind: "histogram", help: help, bounds: bounds, labels: labels})
}
