package llm_test

import (
	"context"
	"fmt"
	"strings"

	"parley/llm"
)

// A whole driver: a model that shouts.
func Example() {
	var shout llm.Model = llm.ModelFunc(func(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		text := strings.ToUpper(req.Messages[len(req.Messages)-1].Text)
		if stream != nil {
			stream(llm.Delta{Text: text})
		}
		return llm.Message{Role: llm.Assistant, Text: text, Finish: llm.Stopped}, nil
	})
	m := llm.Retry(shout)
	answer, err := m.Generate(context.Background(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}, nil)
	fmt.Println(answer.Text, err)
	// Output: HELLO <nil>
}
