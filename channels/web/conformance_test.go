package web

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"parley/channels/channeltest"
	"parley/store/mem"
)

// The far side is a browser: it says again, under the same id, what was not
// taken, and reads along.
func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Rig {
		h := open(t, mem.New())
		b, n := h.watch("anna", first, ""), 0
		return channeltest.Rig{Channel: h.Channel, At: h.address("anna", first), Keeps: true, Shown: b.texts, Say: func(text string) {
			n++
			for range 1000 {
				res, _ := h.do("anna", "POST", "/c/first/messages", words{"id": fmt.Sprintf("message-%d", n), "text": text})
				if res.StatusCode == http.StatusAccepted {
					return
				}
				<-time.After(5 * time.Millisecond)
			}
			t.Error("the message is never taken")
		}}
	})
}
