package requiretest

import (
	"fmt"
	"runtime"
	"testing"
)

// An ended is a test that notes how it ended.
type ended struct {
	testing.TB
	how string
}

func (e *ended) Helper() {}

func (e *ended) Fatal(why ...any) { e.end("failed: " + fmt.Sprint(why...)) }

func (e *ended) Skip(why ...any) { e.end("skipped: " + fmt.Sprint(why...)) }

func (e *ended) end(how string) {
	e.how = how
	runtime.Goexit()
}

// What is missing skips a test, and fails it where nothing may be missing.
func TestMissing(t *testing.T) {
	for value, want := range map[string]string{
		"":     `skipped: exec: "no-such-program": executable file not found in $PATH`,
		"some": `skipped: exec: "no-such-program": executable file not found in $PATH`,
		"all":  `failed: exec: "no-such-program": executable file not found in $PATH`,
	} {
		t.Setenv(Variable, value)
		e := &ended{TB: t}
		over := make(chan bool)
		go func() {
			defer close(over)
			Program(e, "no-such-program")
		}()
		<-over
		if e.how != want {
			t.Errorf("%q: %q, not %q", value, e.how, want)
		}
	}
	if path := Program(&ended{TB: t}, "go"); path == "" {
		t.Error("go is not found")
	}
}
