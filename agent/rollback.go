package agent

import (
	"fmt"
	"slices"
	"strings"

	"parley/llm"
	"parley/tools"
)

// How many rounds are taken back: one after the other (E-026), and in a turn (E-027).
const (
	maxRow     = 4
	maxRevoked = 10
)

// revocable says whether the round under way may be taken back: nothing it does
// has an effect.
func (t *turn) revocable() bool {
	o := t.history.open
	return t.Rollback && o.row < maxRow && len(o.revoked) < maxRevoked && !o.ending &&
		!slices.ContainsFunc(o.calls, func(c llm.ToolCall) bool {
			known, _ := t.kit.Tool(c.Name)
			return !known.ReadOnly
		})
}

// judge takes back the round if a lookup in it found nothing of use: the model
// asks again without having seen that (E-012, E-019). The log keeps it all.
func (t *turn) judge() {
	o := t.history.open
	if !o.poor() || !t.revocable() {
		return
	}
	poor := slices.DeleteFunc(slices.Clone(o.calls), func(c llm.ToolCall) bool { return o.done[c.ID] != tools.Poor })
	t.Log.Info("round taken back", "session", t.session.id, "tool", poor[0].Name, "row", o.row+1) // E-028
	t.keep(record{RolledBack: wordsPoor(poor)})
	for _, c := range poor {
		if t.RolledBack != nil {
			t.RolledBack(c.Name)
		}
	}
}

// wordsPoor tells the model that calls found nothing of use.
func wordsPoor(calls []llm.ToolCall) string {
	var what []string
	for _, c := range calls {
		what = append(what, strings.TrimSuffix(c.Name+": "+tip(c.Args), ": "))
	}
	return fmt.Sprintf("[The last lookup (%s) found nothing of use. Ask in other words, or answer with what you have.]", strings.Join(what, "; "))
}
