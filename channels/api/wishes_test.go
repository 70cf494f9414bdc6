package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"parley/chat"
)

const hello = `"messages":[{"role":"user","content":"hi"}]`

// What a request asks of its answer comes with the message.
func TestWishes(t *testing.T) {
	const format = `{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"},"strict":true}}`
	for body, want := range map[string]*chat.Wishes{
		`"model":"parley"`:                                                             nil,
		`"model":"parley","response_format":null`:                                      nil,
		`"model":"parley","max_tokens":null`:                                           nil,
		`"model":"gpt"`:                                                                {Model: "gpt"},
		`"model":"parley","max_tokens":5`:                                              {MaxTokens: 5},
		`"model":"parley","max_completion_tokens":7`:                                   {MaxTokens: 7},
		`"model":"parley","response_format":{"type":"text"}`:                           nil,
		`"model":"parley","response_format":` + strings.ReplaceAll(format, ":", " : "): {Format: json.RawMessage(format)},
	} {
		h := start(t, fresh(), nil)
		if r := h.post("k-ann", "{"+body+","+hello+"}", nil); r.StatusCode != 200 {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
			continue
		}
		got, _ := json.Marshal(h.messages()[0].Wishes)
		if wanted, _ := json.Marshal(want); string(got) != string(wanted) {
			t.Errorf("%s: %s", body, got)
		}
	}
}

// What cannot be done is refused with the field that asks for it, and nothing is heard.
func TestWishesRefused(t *testing.T) {
	h := start(t, fresh(), nil)
	tool := func(fields string) string { return `"tools":[{"type":"function","function":{` + fields + `}}]` }
	twice := strings.TrimSuffix(tool(`"name":"a"`), "]") + `,{"type":"function","function":{"name":"a"}}]`
	many := `"tools":[` + strings.TrimSuffix(strings.Repeat(`{"type":"function","function":{"name":"a"}},`, 129), ",") + `]`
	for _, c := range []struct{ body, param, code string }{
		{`"max_tokens":0`, "max_completion_tokens", "invalid_value"},
		{`"max_completion_tokens":-1`, "max_completion_tokens", "invalid_value"},
		{`"n":2`, "n", "invalid_value"},
		{`"stop":["a","b","c","d","e"]`, "stop", "invalid_value"},
		{`"stop":""`, "stop", "invalid_value"},
		{`"logprobs":true`, "logprobs", "unsupported_parameter"},
		{`"modalities":["text","audio"]`, "modalities", "unsupported_parameter"},
		{`"functions":[]`, "functions", "unsupported_parameter"},
		{`"tool_choice":"required"`, "tool_choice", "unsupported_parameter"},
		{`"tool_choice":{"type":"function","function":{"name":"a"}}`, "tool_choice", "unsupported_parameter"},
		{`"response_format":{"type":"xml"}`, "response_format", "invalid_value"},
		{`"response_format":[]`, "response_format", "invalid_value"},
		{`"response_format":{"type":"json_schema"}`, "response_format", "invalid_value"},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"n"}}`, "response_format", "invalid_value"},
		{tool(`"name":"call_tool"`), "tools[0].function.name", "invalid_value"},
		{tool(`"name":"mcp_find"`), "tools[0].function.name", "invalid_value"},
		{`"response_format":{"type":"json_object","x":"` + strings.Repeat("x", 64<<10) + `"}`, "response_format", "invalid_value"},
		{tool(`"name":""`), "tools[0].function.name", "invalid_value"},
		{tool(`"name":"a b"`), "tools[0].function.name", "invalid_value"},
		{tool(`"name":"a","parameters":[]`), "tools[0].function.parameters", "invalid_value"},
		{tool(`"name":"a","description":"` + strings.Repeat("x", 256<<10) + `"`), "tools", "invalid_value"},
		{`"tools":[{"type":"custom"}]`, "tools[0].type", "invalid_value"},
		{twice, "tools[1].function.name", "invalid_value"},
		{many, "tools", "invalid_value"},
	} {
		r := h.post("k-ann", `{"model":"parley",`+c.body+","+hello+"}", nil)
		var e struct {
			Error struct{ Message, Type, Param, Code string }
		}
		err := json.Unmarshal([]byte(r.body), &e)
		if err != nil || r.StatusCode != 400 || e.Error.Param != c.param || e.Error.Code != c.code || e.Error.Type != "invalid_request_error" {
			t.Errorf("%.80s: %d %s, %v", c.body, r.StatusCode, r.body, err)
		}
	}
	if said := h.said(); len(said) > 0 {
		t.Errorf("heard %q", said)
	}
}

// A model that somebody may not use is not there for them: it is not listed, and cannot be asked.
func TestModelsOfOne(t *testing.T) {
	h := start(t, fresh(), nil)
	for key, want := range map[string]string{"k-ann": "parley gpt", "k-eve": "parley"} {
		list, err := h.client(key).ListModels(t.Context())
		var names []string
		for _, m := range list.Models {
			names = append(names, m.ID)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %q, %v", key, names, err)
		}
	}
	if r := h.post("k-eve", `{"model":"gpt",`+hello+`}`, nil); r.StatusCode != 404 || !strings.Contains(r.body, "model_not_found") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// An answer ends before the first of the stops, streamed or whole, however it comes in, and its conversation goes on.
func TestStopTexts(t *testing.T) {
	h := start(t, fresh(), func(h *testGateway, m chat.Message) {
		const answer = "one two END three"
		for i := range len(answer) {
			h.api.Stream(chat.Reply{Quote: m.ID, Text: answer[:i+1]})
		}
		h.reply(m, answer)
	})
	for _, stop := range []string{`"END"`, `["three","END"]`, `["E"]`} {
		for _, stream := range []bool{false, true} {
			r := h.post("k-ann", fmt.Sprintf(`{"model":"parley","stream":%t,"stop":%s,%s}`, stream, stop, hello), nil)
			text := streamed(t, r.body)
			if !stream {
				var whole openai.ChatCompletionResponse
				if err := json.Unmarshal([]byte(r.body), &whole); err != nil {
					t.Fatal(err)
				}
				text = whole.Choices[0].Message.Content
			}
			if strings.TrimRight(text, " ") != "one two" {
				t.Errorf("stop %s, stream %v: %q", stop, stream, text)
			}
		}
	}
	k := h.talk("k-ann")
	req := k.request("hello")
	req.Stop = []string{" END"}
	r, err := k.client.CreateChatCompletion(t.Context(), req)
	if err != nil || r.Choices[0].Message.Content != "one two" || r.Choices[0].FinishReason != "stop" {
		t.Fatal(r, err)
	}
	k.said = append(k.said, r.Choices[0].Message)
	k.say("and?")
	ms := h.messages()
	if a, b := ms[len(ms)-2], ms[len(ms)-1]; a.At != b.At || b.Quote != nil {
		t.Errorf("it went on at %v, with %v", b.At, b.Quote)
	}
}

// streamed returns the text of a stream.
func streamed(t *testing.T, body string) (text string) {
	t.Helper()
	for line := range strings.Lines(body) {
		var chunk openai.ChatCompletionStreamResponse
		data, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte("{"+data), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			text += c.Delta.Content
		}
	}
	return text
}

// An answer that is as long as the request allows says so, also when it is asked for again.
func TestCutAnswer(t *testing.T) {
	h := start(t, fresh(), func(h *testGateway, m chat.Message) {
		r := m.Reply()
		r.Text = "one, t"
		r.Cut = true
		h.send(r)
	})
	for range 2 {
		body := `{"model":"parley","max_tokens":2,` + hello + `}`
		r := h.post("k-ann", body, map[string]string{"Idempotency-Key": "1"})
		if !strings.Contains(r.body, `"finish_reason":"length"`) {
			t.Error(r.body)
		}
	}
	if n := len(h.messages()); n != 1 {
		t.Errorf("%d messages", n)
	}
}

// What comes for a conversation unasked is added to no answer that must have a form: it waits for the next one.
func TestFormattedAnswerAlone(t *testing.T) {
	h := start(t, fresh(), func(h *testGateway, m chat.Message) { h.reply(m, `{}`) })
	k := h.talk("k-ann")
	k.say("hello")
	h.send(chat.Reply{ID: "note", To: h.messages()[0].At, Text: "Tea is ready.", Unasked: true})
	req := k.request("in JSON")
	req.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: "json_object"}
	r, err := k.client.CreateChatCompletion(t.Context(), req)
	if err != nil || r.Choices[0].Message.Content != "{}" {
		t.Fatal(r, err)
	}
	k.said = append(k.said, r.Choices[0].Message)
	if text := k.say("and?"); text != "{}\n\nTea is ready." {
		t.Errorf("%q", text)
	}
}

// weather is a tool of a client.
func weather() []openai.Tool {
	return []openai.Tool{{Type: "function", Function: &openai.FunctionDefinition{
		Name: "get_weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`),
	}}}
}

// callsTools is an agent that asks the program for the weather of two cities, and then tells what it was told.
func callsTools(h *testGateway, m chat.Message) {
	offered, err := h.api.ClientTools(h.t.Context(), m.ID)
	if err != nil || m.Tainted || len(offered) == 0 {
		h.reply(m, "I was told: "+quoteOf(m))
		return
	}
	text := "One moment."
	for _, city := range []string{"Rome", "Oslo", "Rome"} {
		call := chat.ClientCall{ID: "call-" + city, Name: offered[0].Name, Arguments: `{"city":"` + city + `"}`}
		told, err := h.api.HandOver(h.t.Context(), m.ID, call)
		if err != nil {
			h.t.Error(err)
		}
		if city != "Rome" || !strings.Contains(text, told) {
			text += "\n\n" + told
		}
	}
	h.reply(m, text)
}

func quoteOf(m chat.Message) string {
	if m.Quote == nil {
		return ""
	}
	return m.Quote.Text
}

// A client's tools come with its request; an answer asks for calls, and the client's next request brings the results
// into the same conversation, as data (R-S11, R-S12).
func TestClientTools(t *testing.T) {
	for _, stream := range []bool{false, true} {
		h := start(t, fresh(), callsTools)
		k := h.talk("k-ann")
		other := h.talk("k-ann")
		other.said = append(other.said, openai.ChatCompletionMessage{Role: "user", Content: "weather?"})
		req := k.request("weather?")
		req.Tools = weather()
		answer, finish := ask(t, k, req, stream)
		if finish != "tool_calls" || answer.Content != "One moment." || len(answer.ToolCalls) != 2 {
			t.Fatalf("%s: %+v", finish, answer)
		}
		for i, city := range []string{"Rome", "Oslo"} {
			c := answer.ToolCalls[i]
			if !strings.HasSuffix(c.ID, "-call-"+city) || c.Type != "function" || c.Function.Name != "get_weather" || c.Function.Arguments != `{"city":"`+city+`"}` {
				t.Errorf("%+v", c)
			}
		}
		rome, oslo := answer.ToolCalls[0].ID, answer.ToolCalls[1].ID
		req.Messages = append(req.Messages, answer,
			openai.ChatCompletionMessage{Role: "tool", ToolCallID: rome, Content: "sun"},
			openai.ChatCompletionMessage{Role: "tool", ToolCallID: oslo, Content: "snow"})
		answer, finish = ask(t, k, req, stream)
		want := "I was told: Result of get_weather (" + rome + "):\nsun\nResult of get_weather (" + oslo + "):\nsnow"
		if finish != "stop" || answer.Content != want {
			t.Errorf("%s: %q", finish, answer.Content)
		}
		req.Messages = append(req.Messages, answer, openai.ChatCompletionMessage{Role: "user", Content: "thanks"})
		req.Tools = nil
		ask(t, k, req, stream)
		ms := h.messages()
		for i, text := range []string{"weather?", "", "thanks"} {
			m := ms[i]
			if m.At != ms[0].At || m.Text != text || m.Tainted != (i == 1) || (m.Quote != nil) != (i == 1) {
				t.Errorf("message %d: %+v", i, m)
			}
		}
		if len(ms) != 3 || !slices.Equal(ms[1].Sources, []string{"tools of a program"}) || !ms[1].Quote.Forwarded {
			t.Errorf("%+v", ms)
		}
	}
}

// ask makes a request, and returns the answer and why it ends.
func ask(
	t *testing.T, k *talk, req openai.ChatCompletionRequest, stream bool,
) (answer openai.ChatCompletionMessage, finish openai.FinishReason) {
	t.Helper()
	if !stream {
		r, err := k.client.CreateChatCompletion(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return r.Choices[0].Message, r.Choices[0].FinishReason
	}
	s, err := k.client.CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answer.Role = "assistant"
	for {
		chunk, err := s.Recv()
		if err != nil {
			return answer, finish
		}
		d := chunk.Choices[0].Delta
		answer.Content += d.Content
		for _, c := range d.ToolCalls {
			if c.Index == nil || *c.Index != len(answer.ToolCalls) {
				t.Errorf("call %+v", c)
			}
			c.Index = nil
			answer.ToolCalls = append(answer.ToolCalls, c)
		}
		if r := chunk.Choices[0].FinishReason; r != "" {
			finish = r
		}
	}
}

// A request that is repeated, also after a restart, gets the same calls, and hands nothing over twice. None is
// offered any more, and none taken, once there is an answer.
func TestClientToolsAgain(t *testing.T) {
	s := fresh()
	body := `{"model":"parley","tools":[{"type":"function","function":{"name":"get_weather"}}],` + hello + `}`
	key := map[string]string{"Idempotency-Key": "1"}
	h := start(t, s, callsTools)
	first := h.post("k-ann", body, key)
	id := h.messages()[0].ID
	h.down()
	h = start(t, s, callsTools)
	again := h.post("k-ann", body, key)
	calls := func(body string) string { _, after, _ := strings.Cut(body, `"tool_calls":`); return after }
	if strings.Count(first.body, `-call-`) != 2 || calls(first.body)[:100] != calls(again.body)[:100] {
		t.Errorf("%s\n%s", first.body, again.body)
	}
	if offered, err := h.api.ClientTools(t.Context(), id); len(offered) > 0 || err != nil {
		t.Error(offered, err)
	}
	for _, message := range []string{id, "unknown"} {
		if _, err := h.api.HandOver(t.Context(), message, chat.ClientCall{ID: "3", Name: "get_weather"}); err == nil {
			t.Error(message, "takes calls")
		}
	}
}

// What the model has not said is not cut: an apology, and a question with its choices.
func TestStopSparesWhatNoModelSaid(t *testing.T) {
	h := start(t, fresh(), func(h *testGateway, m chat.Message) {
		r := m.Reply()
		r.Text = "Sorry, no.\n\nTry again."
		r.Failed = true
		if m.Text == "ask" {
			r = chat.Reply{ID: "ask:1", To: m.At, Quote: m.ID, Text: "May I?\n\n1. Yes"}
		}
		h.send(r)
	})
	for _, stop := range []string{`"\n\n"`, `"Sorry"`} {
		r := h.post("k-ann", `{"model":"parley","stop":`+stop+`,`+hello+`}`, nil)
		if r.StatusCode != 502 || !strings.Contains(r.body, `Sorry, no.\n\nTry again.`) {
			t.Errorf("stop %s: %d %s", stop, r.StatusCode, r.body)
		}
	}
}

// A question in the middle answers the request; the one that answers the question gets the calls.
func TestClientToolsAfterQuestion(t *testing.T) {
	var first chat.Message
	h := start(t, fresh(), func(h *testGateway, m chat.Message) {
		if first.ID == "" {
			first = m
			h.send(chat.Reply{ID: "ask:1", To: m.At, Quote: m.ID, Text: "May I?"})
			return
		}
		told, err := h.api.HandOver(h.t.Context(), first.ID, chat.ClientCall{ID: "1", Name: "get_weather", Arguments: "{}"})
		if offered, err := h.api.ClientTools(h.t.Context(), first.ID); err != nil || len(offered) != 1 {
			h.t.Error(offered, err)
		}
		r := first.Reply()
		r.Text = told
		h.send(r)
		if err != nil {
			h.t.Error(err)
		}
	})
	k := h.talk("k-ann")
	req := k.request("weather?")
	req.Tools = weather()
	answer, finish := ask(t, k, req, false)
	if finish != "stop" || answer.Content != "May I?" {
		t.Fatalf("%s: %+v", finish, answer)
	}
	req.Messages = append(req.Messages, answer, openai.ChatCompletionMessage{Role: "user", Content: "y"})
	answer, finish = ask(t, k, req, false)
	if finish != "tool_calls" || len(answer.ToolCalls) != 1 || answer.Content != "" {
		t.Errorf("%s: %+v", finish, answer)
	}
}
