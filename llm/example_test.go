package llm_test

import (
	"context"
	"fmt"
	"strings"

	"parley/llm"
)

// This is a complete driver: a model that shouts.
func Example() {
	type stream = func(llm.Delta)
	shout := llm.ModelFunc(func(_ context.Context, req llm.Request, stream stream) (llm.Message, error) {
		text := strings.ToUpper(req.Messages[len(req.Messages)-1].Text)
		if stream != nil {
			stream(llm.Delta{Text: text})
		}
		return llm.Message{Role: llm.Assistant, Text: text, Finish: llm.Stopped}, nil
	})
	m := llm.Retry(shout)
	hello := llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}
	answer, err := m.Generate(context.Background(), hello, nil)
	fmt.Println(answer.Text, err)
	// Output: HELLO <nil>
}
