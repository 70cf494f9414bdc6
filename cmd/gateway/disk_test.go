package main

import (
	"regexp"
	"strings"
	"testing"
)

// An owner sees in parley status what takes how much of the disk, as in /status: from the
// start on, if only that it is not measured yet.
func TestStatusTellsSizes(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	w.logs("web       http", 1) // or /status is answered without the gateway
	out, code := w.run("", "status")
	if code != 0 || !regexp.MustCompile(`(?m)^disk +not measured yet; `).MatchString(out) {
		t.Errorf("status: %d\n%s", code, out)
	}
	if out := w.status(); !strings.Contains(out, "On disk: not measured yet; ") {
		t.Errorf("/status: %s", out)
	}
	w.stop()
}
