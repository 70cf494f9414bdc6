package chat

import (
	"testing"
	"time"
)

// §2.10: what remains of the steps is one line.
func TestSum(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	read := Step{Tool: "read_file", State: Done, Began: at(1), Ended: at(2)}
	for want, steps := range map[string][]Step{
		"":                  nil,
		"🔧 clock":           {{Tool: "clock", State: Done}},
		"🔧 read_file – 1 s": {read},
		"🔧 The web – 0.2 s": {{Tool: "web_search", Name: "The web", State: Done, Began: at(1), Ended: at(1.17)}},
		"🔧 a, b, 2 failed":  {{Tool: "a", State: Failed}, {Tool: "b", State: Failed}},
		"🔧 c – 125 s":       {{Tool: "c", State: Done, Began: at(0), Ended: at(125.2)}},
		"🔧 d":               {{Tool: "d", State: Running, Began: at(0)}},
		"🔧 web_search, read_file ×3 – 4 s, 1 failed": {{Tool: "web_search", State: Failed, Began: at(0), Ended: at(3.8)}, read, read, read},
	} {
		if got := Sum(steps); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
