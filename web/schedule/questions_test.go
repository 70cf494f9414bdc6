package schedule_test

import (
	"strings"
	"testing"

	"parley/scheduler"
)

// Questions are about the job that has that name, and about one job or several.
func TestQuestions(t *testing.T) {
	s := serve(t, newPages(t, scheduler.Job{ID: "hi", Name: "say hi to me", Text: "x", Schedule: scheduler.Schedule{Cron: "0 8 * * *"}}))
	if _, page := get(t, s, "/owner/cron"); !strings.Contains(page, `data-sure="Remove “say hi to me”?"`) {
		t.Errorf("the page does not quote the name: %s", page)
	}
	if _, page := get(t, s, "/owner/cron/rehearsal"); !strings.Contains(page, "Ask the model once for 1 job? That takes a number of tokens that is not known yet, as none has run.") {
		t.Errorf("the question is not about one job: %s", page)
	}
}
