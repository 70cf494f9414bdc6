package web

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"parley/channels/channeltest"
)

// The far side is a browser: it says again, under the same id, what was not
// taken, and reads along.
func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Rig {
		h := newTestGateway(t)
		b, direct, n := h.watch("anna", firstID, ""), h.watch("anna", noticesID, ""), 0
		post := func(path string, body words) {
			n++
			body["id"] = fmt.Sprintf("message-%d", n)
			for range 1000 {
				if res, _ := h.do("anna", "POST", path, body); res.StatusCode == http.StatusAccepted {
					return
				}
				<-time.After(5 * time.Millisecond)
			}
			t.Error("the message is never taken")
		}
		return channeltest.Rig{Channel: h.Channel, At: h.address("anna", firstID), Keeps: true,
			Shown: func() []string { return append(b.texts(), direct.texts()...) },
			Say:   func(text string) { post("/c/first/messages", words{"text": text}) },
			Press: func(question string, choice int) bool {
				h.reply("anna", firstID, fmt.Sprint("mark", n), fmt.Sprint("so far ", n)) // what was sent before it is there with it
				until(t, "the mark is shown", func() bool { return slices.Contains(b.texts(), fmt.Sprint("so far ", n)) })
				for _, e := range b.entries() {
					if e.Ask != nil && e.Ask.ID == question && choice < len(e.Ask.Choices) {
						post("/c/first/answer", words{"question": question, "choice": choice})
						return true
					}
				}
				return false
			},
		}
	})
}
