package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/agent"
	"parley/llm"
	"parley/timetest"
	"parley/tools"
)

const (
	later = "The model is overloaded right now. I will answer by myself once it is back; you need not write again."
	back  = "(I could not reach my model when you wrote. It is back, and this is the answer.)\n\n"
)

// down makes a model that is overloaded until it is up, and wants a call made
// before it answers.
func down(up func() bool) func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
	return func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		switch {
		case lastOf(r).Role == llm.User && strings.HasSuffix(lastOf(r).Text, "pay"):
			return calls(call("1", "pay")), nil
		case !up():
			return llm.Message{}, &llm.Error{Kind: llm.Overloaded, Err: errors.New("no")}
		}
		return words("answer to " + spoken(r, 1)), nil
	}
}

// TestOutage is P11: a message that was told that the model is overloaded is
// answered by itself when the model is back, once, where it was, also after a
// restart; nobody is told twice.
func TestOutage(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		began, paid := time.Now(), 0
		h := &house{t: t, model: down(func() bool { return time.Since(began) > time.Hour })}
		h.tools = []tools.Tool{tool("pay", func(context.Context) (string, error) { paid++; return "paid", nil })}
		h.start()
		h.say("1", "pay")
		timetest.Sleep(time.Second)
		h.want(later)
		timetest.Sleep(20 * time.Minute)
		h.stop()
		h.start()
		timetest.Sleep(39 * time.Minute)
		h.want()
		timetest.Sleep(15 * time.Minute)
		h.want(back + "answer to tool paid")
		if paid != 1 {
			t.Errorf("paid %d times", paid)
		}
		timetest.Sleep(48 * time.Hour)
		h.want()
		if n, err := h.store.Queue("inbox").Len(t.Context()); n != 0 || err != nil {
			t.Errorf("%d messages left in the inbox, %v", n, err)
		}
		h.stop()
	})
}

// TestOutageEnds: the first answer of the model wakes all who wait for it, and
// what is said in the meantime does not wait.
func TestOutageEnds(t *testing.T) {
	up := false
	play(t, &house{model: down(func() bool { return up })}, func(h *house) {
		h.say("1", "one")
		timetest.Sleep(time.Second)
		h.say("2", "two")
		timetest.Sleep(time.Second)
		h.want(later, later)
		up = true
		h.say("3", "three")
		timetest.Sleep(time.Second)
		h.want("answer to user three", back+"answer to user one", back+"answer to user two")
	})
}

// TestOutageIsTooLong: a model that does not come back within messageTTL is not
// waited for any longer, and the person is told.
func TestOutageIsTooLong(t *testing.T) {
	h := &house{model: down(func() bool { return false }), set: func(s *agent.Settings) { s.MaxAge = time.Hour }}
	play(t, h, func(h *house) {
		h.say("1", "one")
		timetest.Sleep(time.Second)
		h.want(later)
		timetest.Sleep(2 * time.Hour)
		h.want("I was away, and your message is more than an hour old. I have read it; say so if you still want an answer.")
		h.say("2", "/new")
		timetest.Sleep(time.Second)
		h.want("A new conversation. What is on your mind?")
	})
}

// TestOutageIsOver: nobody is answered any more whose conversation is over.
func TestOutageIsOver(t *testing.T) {
	up := false
	play(t, &house{model: down(func() bool { return up })}, func(h *house) {
		h.say("1", "one")
		timetest.Sleep(time.Second)
		h.say("2", "/new")
		timetest.Sleep(time.Second)
		up = true
		timetest.Sleep(time.Hour)
		h.want(later, "A new conversation. What is on your mind?")
		if n, err := h.store.Queue("inbox").Len(t.Context()); n != 0 || err != nil {
			t.Errorf("%d messages left in the inbox, %v", n, err)
		}
	})
}
