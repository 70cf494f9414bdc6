package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/timetest"
	"parley/tools"
)

// R-S12: a yes for a while is for calls with the same effect, in that
// conversation or for an hour, also after a restart; it is shown and can be revoked.
func TestGrants(t *testing.T) {
	var asked []string
	answer := ""
	var h *house
	post := tool("post", nil)
	post.Guard = func(tools.Call) bool { return true }
	post.Effect = func(c tools.Call) string { return "post to " + c.Input["to"].(string) }
	post.Schema = []byte(`{"type":"object","properties":{"to":{"type":"string"}}}`)
	post.Run = func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Text: "posted"}, nil }
	page := giving("page", tools.Hints{ReadOnly: true}, tools.Result{Text: "post a", Tainted: true})
	h = &house{tools: []tools.Tool{post, page}}
	h.set = func(s *agent.Settings) {
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			ask := func(ctx context.Context, c tools.Call, prompt string) (bool, string, error) {
				asked = append(asked, c.Effect)
				if answer == "conversation" || answer == "hour" {
					if err := h.pool.Sessions().Grant(ctx, c, "test:7", answer == "hour"); err != nil {
						t.Error(err)
					}
				}
				return answer != "no", "test:7", nil
			}
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools)}, tools.Standard(tools.StandardConfig{Approve: ask})...)
		}
	}
	play(t, h, func(h *house) {
		n := 0
		do := func(to, say string) {
			t.Helper()
			n++
			asked, answer = nil, say
			h.model = script(calls(call("p", "page")), calls(with("c", "post", `{"to":"`+to+`"}`)), words("ok"))
			h.say(strings.Repeat("m", n), "go on")
			synctest.Wait()
		}
		wants := func(what string, want ...string) {
			t.Helper()
			if strings.Join(asked, ",") != strings.Join(want, ",") {
				t.Errorf("%s: asked %q, want %q", what, asked, want)
			}
		}
		do("a", "yes")
		wants("at first", "post to a")
		do("a", "conversation")
		wants("a yes was for once", "post to a")
		do("a", "no")
		wants("in the conversation")
		do("b", "hour")
		wants("another effect", "post to b")
		h.stop()
		h.start()
		h.sent = nil
		h.say("list", "/approvals")
		h.want("Without asking again I may:\n\n1. post to a (until /new)\n2. post to b (until 01:00)\n\nTo revoke one, write /approvals revoke NUMBER; to revoke all, /approvals revoke all.")
		h.say("new", "/new")
		synctest.Wait()
		do("a", "no")
		wants("after /new", "post to a")
		do("b", "no")
		wants("within the hour")
		timetest.Sleep(time.Hour)
		do("b", "hour")
		wants("after the hour", "post to b")
		h.sent = nil
		user := message("r1", "/approvals revoke all")
		user.From = chat.Sender{ID: "8", Role: chat.User}
		h.deliver(user)
		h.want("Only owners can revoke approvals.")
		h.say("r2", "/approvals revoke 1")
		h.want("Revoked. I will ask again.")
		do("b", "no")
		wants("once revoked", "post to b")
		h.sent = nil
		h.say("r3", "/approvals")
		if synctest.Wait(); !strings.HasPrefix(h.sent[0], "Nothing is approved") {
			t.Errorf("%q", h.sent)
		}
		do("a", "conversation")
		do("b", "hour")
		h.sent = nil
		revoke := message("r4", "/approvals revoke 1")
		h.deliver(revoke)
		h.want("Revoked. I will ask again.")
		h.deliver(revoke) // the network brings it again
		h.want()
		if st, _, err := h.pool.Sessions().Lookup(t.Context(), "test:1"); err != nil || len(st.Grants) != 1 {
			t.Errorf("left are %+v, %v", st.Grants, err)
		}
	})
}
