package web

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The owner stops what runs, is told what it was, and so is the audit log (R-S27). Others, and requests that
// another site may have sent, stop nothing.
func TestStop(t *testing.T) {
	f := newFace(t)
	boss, anna := f.owner(t), f.invited(t, "anna")
	f.audited = nil
	stop := asking{method: "POST", path: "/api/work/turn:web:owner%2F1/stop", by: boss}
	forged := stop
	forged.header = http.Header{ownHeader: nil}
	f.want(t, 403, forged)
	foreign := stop
	foreign.header = http.Header{"Origin": {"https://evil.example"}}
	f.want(t, 403, foreign)
	other := stop
	other.by = anna
	f.want(t, 404, other)
	other.by = ""
	f.want(t, 401, other)
	if len(f.did) > 0 {
		t.Fatalf("they did %q", f.did)
	}
	told := decoded[struct{ Said string }](t, f.want(t, 200, stop))
	if told.Said != "Stopped the turn in "+evil+"." || !slices.Equal(f.did, []string{"stop turn:web:owner/1 for owner"}) {
		t.Errorf("said %q, did %q", told.Said, f.did)
	}
	if !slices.Equal(f.audited, []string{"session owner stopped: the turn in " + evil}) {
		t.Errorf("audited %q", f.audited)
	}
	stop.path = "/api/work/absent/stop"
	if body := read(t, f.want(t, 404, stop)); !strings.Contains(body, "it is over already") {
		t.Errorf("what is over: %s", body)
	}
}

// The dashboard is the same as JSON.
func TestDashboardAPI(t *testing.T) {
	f := newFace(t)
	got := decoded[struct {
		Turns  int
		Errors int
		Work   []struct{ Kind string }
		Days   []struct{ Turns int }
		Hours  []struct{ Turns int }
	}](t, f.want(t, 200, asking{path: "/api/dashboard", by: f.owner(t)}))
	if got.Turns != 2 || got.Errors != 2 || len(got.Work) != 1 || got.Work[0].Kind != "turn" || len(got.Days) != 30 || len(got.Hours) != 24 {
		t.Errorf("it is %+v", got)
	}
}

// The dashboard and the status show each gateway that shares the store, and what it does. Where the store is of one
// machine they show none.
func TestInstances(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	page := read(t, f.want(t, 200, asking{path: "/owner", by: boss}))
	if !regexp.MustCompile(`(?s)>Gateways</h2>.*process 1 on .*>answers<.*process 2 on .*>stands by<`).MatchString(page) {
		t.Errorf("the dashboard has %s", page)
	}
	status := decoded[struct {
		Gateways []struct{ State string }
	}](t, f.want(t, 200, asking{path: "/api/status", by: boss}))
	if all := status.Gateways; len(all) != 2 || all[0].State != "answers" || all[1].State != "stands by" {
		t.Errorf("the status has %+v", all)
	}
	var none strings.Builder
	if err := (pages{}).instanceTable(nil).Render(&none); err != nil || none.Len() > 0 {
		t.Errorf("without others it is %q, %v", none.String(), err)
	}
}
