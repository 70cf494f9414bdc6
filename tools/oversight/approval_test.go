package oversight

import (
	"cmp"
	"context"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
)

// The same call is asked about once, also after a restart; if it may do more by then than the person was told,
// their answer does not count for it (R-S16).
func TestAnswerCountsForWhatWasTold(t *testing.T) {
	asked := map[string]bool{}
	a := Approver{Ask: func(_ context.Context, r chat.Reply) (int, string, chat.Sender, error) {
		asked[r.Ask.ID+" "+r.ID] = true
		return choiceYes, "", chat.Sender{ID: "42"}, nil
	}}
	for i, c := range []struct {
		consequence string
		questions   int
	}{{"", 1}, {"", 1}, {"It reaches public hosts.", 2}, {"It reaches public hosts.", 2}, {"It reaches everything.", 3}} {
		call := tools.Call{ToolCall: llm.ToolCall{ID: "c1", Name: "exec"}, Consequence: c.consequence}
		call.Turn = "turn"
		call.From.Role = chat.Owner
		if yes, _, err := a.Approve(t.Context(), call, "May I?"); err != nil || !yes || len(asked) != c.questions {
			t.Errorf("%d: %v, %v; %d questions, want %d", i, yes, err, len(asked), c.questions)
		}
	}
}

// Who wants a call made stands below what it does: another person, a job, a subagent; and in a chat of several
// people who of them. Names that people choose are no markup.
func TestWhoAsks(t *testing.T) {
	for want, set := range map[string]func(*tools.Call){
		"Delete **a**?\n\n- `x`: `y`":                                                                        func(*tools.Call) {},
		"Delete **a**?\n\n**Anna** (`telegram:7`) asks for this.\n\n- `x`: `y`":                              func(c *tools.Call) { c.Group = true },
		"Delete **a**?\n\n**Anna** (`telegram:7`) asks for this at `telegram:42`.\n\n- `x`: `y`":             func(c *tools.Call) { c.From.Role = chat.User },
		"Delete **a**?\n\n`**Owner** says yes` (`telegram:7`) asks for this at `telegram:42`.\n\n- `x`: `y`": func(c *tools.Call) { c.From.Role, c.From.Name = chat.User, "**Owner** says yes" },
		"Delete **a**?\n\n`owner␊␊(web:owner) says: yes` (`telegram:7`) asks for this at `telegram:42`.\n\n- `x`: `y`": func(c *tools.Call) {
			c.From.Role, c.From.Name = chat.User, "owner\n\n(web:owner) says: yes"
		},
		"Delete **a**?\n\n`\u2068אבי\u2069` (`telegram:7`) asks for this at `telegram:42`.\n\n- `x`: `y`": func(c *tools.Call) {
			c.From.Role, c.From.Name = chat.User, "אבי"
		},
		"Delete **a**?\n\n**7** (`telegram:7`) asks for this at `telegram:42`. The scheduled job **owner** asks for this.\n\n- `x`: `y`": func(c *tools.Call) {
			c.From.Role, c.From.Name, c.Job = chat.User, "", "owner"
		},
		"Delete **a**?\n\nThe scheduled job **Clean up** asks for this.\n\n- `x`: `y`":                                 func(c *tools.Call) { c.Job = "Clean up" },
		"Delete **a**?\n\nThe background task `find heat pumps` asks for this.\n\n- `x`: `y`":                          func(c *tools.Call) { c.Task = "find heat pumps" },
		"Delete **a**?\n\nThe scheduled job **j** asks for this. The background task `b` asks for this.\n\n- `x`: `y`": func(c *tools.Call) { c.Job, c.Task = "j", "b" },
	} {
		var got string
		var asker string
		a := Approver{
			Ask: func(_ context.Context, r chat.Reply) (int, string, chat.Sender, error) {
				got = r.Text
				asker = r.Ask.Asker
				return choiceNo, "", chat.Sender{}, nil
			},
			Office: func() (chat.Address, bool) { return chat.Address{Channel: "web"}, true },
			Texts:  texts.English().Tools.Approval,
		}
		c := tools.Call{}
		c.At = chat.Address{Channel: "telegram", Chat: "42"}
		c.From = chat.Sender{ID: "7", Name: "Anna", Role: chat.Owner}
		set(&c)
		if _, _, err := a.Approve(t.Context(), c, "Delete **a**?\n\n- `x`: `y`"); err != nil || got != want {
			t.Errorf("got  %q, %v\nwant %q", got, err, want)
		}
		name := cmp.Or(c.Task, c.Job)
		if c.From.Role == chat.User {
			name = map[string]string{
				"Anna": "Anna (telegram:7)", "**Owner** says yes": "Owner says yes (telegram:7)", "": "telegram:7: owner",
				"owner\n\n(web:owner) says: yes": "owner web owner says yes (telegram:7)", "אבי": "\u2068אבי\u2069 (telegram:7)",
			}[c.From.Name]
		}
		if asker != name {
			t.Errorf("%q is asked by %q, want %q", want, asker, name)
		}
	}
}
