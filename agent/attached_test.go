package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/timetest"
	"parley/tools"
)

// drawing is a tool whose n-th call makes the n-th of files.
func drawing(files ...[]string) tools.Tool {
	t := tool("draw", nil)
	n := 0
	t.Run = func(context.Context, tools.Call) (tools.Result, error) {
		n++
		return tools.Result{Text: "drawn", Attached: files[n-1]}, nil
	}
	return t
}

// keepReplies has the replies that the house sends added to list.
func keepReplies(h *house, list *[]chat.Reply) {
	h.conf = func(c *agent.Config) {
		send := c.Send
		c.Send = func(ctx context.Context, r chat.Reply) error {
			h.mu.Lock()
			if _, sent := h.said[r.ID]; !sent {
				*list = append(*list, r)
			}
			h.mu.Unlock()
			return send(ctx, r)
		}
	}
}

func pathsOf(files []chat.File) (paths []string) {
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

// The files that tools made for the person come with the answer, and with no later one. Of those of the same
// name, the last one comes, and not more than ten in all.
func TestAttachments(t *testing.T) {
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("work/%02d.txt", i))
	}
	for _, c := range []struct {
		name string
		made [][]string
		want []string
	}{
		{"one", [][]string{{"work/1/a.png"}}, []string{"work/1/a.png"}},
		{"of two calls", [][]string{{"work/1/a.png", "work/1/b.csv"}, {"work/2/c.txt"}}, []string{"work/1/a.png", "work/1/b.csv", "work/2/c.txt"}},
		{"made again", [][]string{{"work/1/a.png", "work/1/b.csv"}, {"work/2/a.png"}}, []string{"work/1/b.csv", "work/2/a.png"}},
		{"too many", [][]string{many}, many[2:]},
	} {
		t.Run(c.name, func(t *testing.T) {
			var answers []chat.Reply
			var says []llm.Message
			for i := range c.made {
				says = append(says, calls(call(fmt.Sprint(i), "draw")))
			}
			h := &house{tools: []tools.Tool{drawing(c.made...)}, model: script(append(says, words("here"), words("bye"))...)}
			keepReplies(h, &answers)
			play(t, h, func(h *house) {
				h.say("1", "draw")
				h.want("here")
				h.say("2", "bye")
				h.want("bye")
			})
			if len(answers) != 2 || !slices.Equal(pathsOf(answers[0].Files), c.want) || len(answers[1].Files) > 0 {
				t.Errorf("%+v", answers)
			}
		})
	}
}

// A restart between the call and the answer loses no file.
func TestAttachmentsSurviveARestart(t *testing.T) {
	var answers []chat.Reply
	h := &house{tools: []tools.Tool{drawing([]string{"work/1/a.png"})}}
	restarted := false
	h.model = func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		switch {
		case restarted:
			return words("here"), nil
		case r.Messages[len(r.Messages)-1].Role == llm.ToolRole:
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		}
		return calls(call("1", "draw")), nil
	}
	keepReplies(h, &answers)
	play(t, h, func(h *house) {
		h.say("1", "draw")
		synctest.Wait()
		h.stop()
		restarted = true
		h.start()
		timetest.Sleep(time.Minute)
		h.want("here")
	})
	if len(answers) != 1 || !slices.Equal(pathsOf(answers[0].Files), []string{"work/1/a.png"}) ||
		answers[0].Files[0].Type != "image/png" || answers[0].Files[0].Name != "a.png" {
		t.Errorf("%+v", answers)
	}
}
