package replay

import (
	"fmt"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/chat"

	"context"
)

// Compare notes the first record that is not as it was. In which groups calls
// were begun depends on what is not recorded of tools, and on people.
func (p *Replayer) Compare(ctx context.Context, sessions *conversation.Sessions) error {
	was := essence(p.turn.records)
	var again []conversation.NumberedRecord
	for n, err := range sessions.Records(ctx, p.recording.session, 0, p.turn.records[0].Seq-1) {
		if err != nil {
			return err
		}
		again = append(again, n)
	}
	is := essence(again)
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(is):
			p.differ("there is no more of: " + chat.ClipMiddle(was[i], 160))
		case i >= len(was):
			p.differ("there was nothing of: " + chat.ClipMiddle(is[i], 160))
		case was[i] != is[i]:
			p.differ(fmt.Sprintf("record %d: %s", i+1, apart(was[i], is[i])))
		default:
			continue
		}
		break
	}
	return nil
}

// essence returns what must be the same again of records. Not part of it are why
// a model failed, which of several calls under way ended first, and the names of
// the sources of untrusted content, which older recordings do not have.
func essence(records []conversation.NumberedRecord) (all []string) {
	var results []conversation.Record // that follow each other
	flush := func() {
		slices.SortFunc(results, func(a, b conversation.Record) int {
			return strings.Compare(a.Finished.Call, b.Finished.Call)
		})
		for _, r := range results {
			all = append(all, string(r.Encode()))
		}
		results = nil
	}
	for _, n := range records {
		r := n.Record
		if r.Started != nil {
			continue
		}
		if r.Finished != nil {
			results = append(results, r)
			continue
		}
		flush()
		if r.Asked != nil {
			request := *r.Asked
			request.Untrusted = nil
			r.Asked = &request
		}
		if e := r.Ended; e != nil {
			r.Ended = &conversation.End{Outcome: e.Outcome}
			if e.Reply != nil && e.Outcome != conversation.Failed {
				r.Ended.Reply = &chat.Reply{Text: strings.TrimSpace(strings.TrimSuffix(e.Reply.Text, e.Note))}
			}
		}
		all = append(all, string(r.Encode()))
	}
	flush()
	return all
}
