package sampling

import (
	"math"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/llm"
	"parley/tools/mcp"
)

// Limits of a request.
const (
	maxMessages = 100
	maxText     = 256 << 10 // bytes of all messages and instructions
	maxPictures = 5
	maxStops    = 16
)

// A request is what a server wants to know of a model.
type request struct {
	llm.Request
	stops       []string
	hasPictures bool
}

// newRequest returns what p asks, or an error that says what is wrong with it. What p says of the context to
// include is ignored, as is the temperature, which the config sets.
func newRequest(p *mcp.SamplingRequest) (request, error) {
	r := request{stops: p.StopSequences}
	r.System = p.SystemPrompt
	r.MaxTokens = int(min(max(p.MaxTokens, 0), math.MaxInt32))
	switch {
	case len(p.Tools) > 0 || p.ToolChoice != nil:
		return r, invalid("requests with tools are not supported")
	case len(p.Messages) == 0:
		return r, invalid("there are no messages")
	case len(p.Messages) > maxMessages:
		return r, invalid("there are more than %d messages", maxMessages)
	case len(r.stops) > maxStops:
		return r, invalid("there are more than %d stop sequences", maxStops)
	}
	bytes := len(r.System)
	pictures := 0
	for _, said := range p.Messages {
		if said == nil {
			return r, invalid("a message is missing")
		}
		m, err := newMessage(said.Role, said.Content)
		if err != nil {
			return r, err
		}
		bytes += len(m.Text)
		pictures += len(m.Images)
		r.Messages = append(r.Messages, m)
	}
	r.hasPictures = pictures > 0
	if bytes > maxText || pictures > maxPictures {
		return r, invalid("there are more than %d bytes of text, or %d pictures", maxText, maxPictures)
	}
	return r, nil
}

// newMessage returns what was said as models are told it.
func newMessage(role sdk.Role, content []sdk.Content) (m llm.Message, err error) {
	switch role {
	case "assistant":
		m.Role = llm.Assistant
	case "user":
		m.Role = llm.User
	default:
		return m, invalid("a message is of the role %q", role)
	}
	for _, part := range content {
		switch c := part.(type) {
		case *sdk.TextContent:
			if m.Text != "" {
				m.Text += "\n\n"
			}
			m.Text += c.Text
		case *sdk.ImageContent:
			image, err := llm.NewImage(c.Data)
			switch {
			case err != nil:
				return m, invalid("%v", err)
			case m.Role != llm.User:
				return m, invalid("an assistant cannot show pictures")
			}
			m.Images = append(m.Images, image)
		default:
			return m, invalid("only texts and pictures are supported")
		}
	}
	return m, nil
}
