package conversation

import (
	"testing"
	"time"

	"parley/chat"
)

// TestRightsOfRetry: an answer that is made anew has the rights of those who are heard in its turn, also where
// the model is told beside their words what the old answer has changed, or what cannot be read.
func TestRightsOfRetry(t *testing.T) {
	t.Parallel()
	ann := chat.Sender{ID: "7", Name: "Ann", Role: chat.Owner}
	bob := chat.Sender{ID: "8", Name: "Bob", Role: chat.User}
	for name, c := range map[string]struct {
		turn []Record
		left []string
		want chat.Sender
	}{
		"an owner":                      {[]Record{heard("q", ann)}, nil, ann},
		"an owner, after a change":      {[]Record{heard("q", ann)}, []string{"write_file"}, ann},
		"an owner, after damage":        {[]Record{heard("q", ann), {Unreadable: true}}, nil, ann},
		"another":                       {[]Record{heard("q", bob)}, []string{"write_file"}, bob},
		"an owner whom another joined":  {[]Record{heard("q", ann), heard("r", bob)}, []string{"write_file"}, bob},
		"another whom an owner retries": {[]Record{heard("q", bob)}, nil, bob},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := NewHistory(time.UTC)
			records := append(c.turn, saying("a"), over(Answered), Record{Retried: heard("/retry", ann).Heard, Left: c.left})
			for i, r := range records {
				h.Apply(uint64(i+1), r)
			}
			if got := h.OpenTurn().From(); got != c.want {
				t.Errorf("the turn has the rights of %+v, want those of %+v", got, c.want)
			}
		})
	}
}
