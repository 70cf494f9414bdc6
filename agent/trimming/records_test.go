package trimming

import (
	"testing"
	"time"

	"parley/agent/conversation"
	"parley/chat"
)

// P21: what cannot be read behind the last message may be a young one, and so the
// conversation is not over. A message behind it that is old says that it is old, too.
func TestDamageMayBeYoung(t *testing.T) {
	heard := conversation.Record{Heard: &chat.Message{Time: time.Unix(1, 0)}}
	damaged := conversation.Record{Unreadable: true}
	ended := conversation.Record{Ended: &conversation.End{}}
	for name, c := range map[string]struct {
		records []conversation.Record
		unsure  bool
	}{
		"sound":              {[]conversation.Record{heard, ended}, false},
		"damaged at its end": {[]conversation.Record{heard, ended, damaged, ended}, true},
		"damaged before":     {[]conversation.Record{damaged, ended, heard, ended}, false},
	} {
		scan := oldRecords{before: time.Unix(2, 0)}
		for i, r := range c.records {
			scan.add(conversation.NumberedRecord{Seq: uint64(i + 1), Record: r})
		}
		if scan.unsure != c.unsure {
			t.Errorf("%s: unsure is %v", name, scan.unsure)
		}
	}
}
