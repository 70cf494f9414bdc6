package replay

import (
	"strings"
	"testing"
	"time"

	"parley/chat"
)

// TestPrinterNamesTheSpeaker checks that what no person wrote is not printed as if
// the person for whom it was done had written it.
func TestPrinterNamesTheSpeaker(t *testing.T) {
	for origin, want := range map[chat.Origin]string{
		chat.FromPerson:   "Ann",
		chat.FromSchedule: "a scheduled job",
		chat.FromSubagent: "a background task",
	} {
		var out strings.Builder
		p := Printer{Out: &out, Zone: time.UTC}
		p.printMessage(chat.Message{From: chat.Sender{ID: "7", Name: "Ann"}, Origin: origin, Text: "hi"})
		if !strings.Contains(out.String(), " "+want+"\n") {
			t.Errorf("%v: %q", origin, out.String())
		}
	}
}
