package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
)

// The channel extension of coding agents: messages are pushed into a session, and its questions for permission
// are asked elsewhere.
const (
	channelCapability    = "claude/channel"
	permissionCapability = "claude/channel/permission"
	channelMethod        = "notifications/claude/channel"
	permissionMethod     = "notifications/claude/channel/permission"
	permissionRequest    = "notifications/claude/channel/permission_request"
)

// push pushes the messages that people write to the coding session into it. What the session neither answers nor
// acknowledges waits at the Server, and is pushed again when it has started again. While the messages cannot be
// fetched, that is logged once.
func (b *Bridge) push(ctx context.Context) {
	known := []string{}
	failing := false
	for ctx.Err() == nil {
		messages, err := b.waitForMessages(ctx, known)
		if err != nil {
			if ctx.Err() != nil || b.hasEnded() {
				return
			}
			if !failing {
				const text = "could not fetch messages for the coding session; trying again"
				b.Log.Warn(text, "session", b.Channel, "err", err)
			}
			failing = true
			select {
			case <-ctx.Done():
			case <-time.After(retryPause):
			}
			continue
		}
		failing = false
		for _, m := range messages {
			meta := map[string]string{
				"message_id": m.ID, "user": m.From, "chat_id": m.Chat, "ts": m.Time.Format(time.RFC3339),
			}
			if b.conn.notify(ctx, channelMethod, map[string]any{"content": m.Text, "meta": meta}) != nil {
				return
			}
			known = append(known, m.ID)
			known = known[max(0, len(known)-maxWaiting):]
		}
	}
}

// waitForMessages returns the messages that wait for the coding session, without those that are known.
func (b *Bridge) waitForMessages(ctx context.Context, known []string) ([]codingMessage, error) {
	args := map[string]any{"session": b.Channel, "timeout_seconds": pushInterval, "known": known}
	result, err := b.call(ctx, "wait_for_message", args, nil)
	if err != nil {
		return nil, err
	}
	if result.IsError {
		return nil, fmt.Errorf("the gateway answered: %s", textOf(result))
	}
	var got codingMessages
	err = remarshal(result.StructuredContent, &got)
	return got.Messages, err
}

// textOf returns what a result says.
func textOf(r *mcp.CallToolResult) string {
	var lines []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			lines = append(lines, text.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// A permission is what a coding session asks leave for.
type permission struct {
	ID          string `json:"request_id"`
	Tool        string `json:"tool_name"`
	Description string `json:"description"`
	Preview     string `json:"input_preview"`
}

const (
	allow = "Allow"
	deny  = "Deny"

	maxToolName    = 100 // characters
	maxDescription = 500
	maxPreview     = 1000
	maxPermissions = 8 // questions that are open
)

// question says in Markdown what the session of that name wants to do. What it says itself is quoted.
func (p permission) question(session string) string {
	tool := chat.InlineCode(cmp.Or(p.Tool, "?"), maxToolName)
	text := fmt.Sprintf("💻 The coding session `%s` wants to use %s.", session, tool)
	said := chat.QuoteLines(p.Description, maxDescription) + "\n" + chat.QuoteLines(p.Preview, maxPreview)
	if said = strings.TrimSpace(said); said != "" {
		text += " It says:\n" + said
	}
	return text
}

// An openPermission is one that the person is asked for.
type openPermission struct {
	id     string
	cancel context.CancelFunc
}

// relay asks the person for the permissions that the coding session wants. Whoever answers first, in the chat or
// at the session, decides. Nobody says what was answered at the session, so the oldest question is taken back when
// there are too many.
func (b *Bridge) relay(ctx context.Context, working *sync.WaitGroup) {
	var open []*openPermission // the oldest first
	answered := make(chan *openPermission)
	for {
		select {
		case <-ctx.Done():
			for _, o := range open {
				o.cancel()
			}
			return
		case o := <-answered:
			o.cancel()
			open = slices.DeleteFunc(open, func(other *openPermission) bool { return other == o })
		case p := <-b.conn.asked:
			if slices.ContainsFunc(open, func(o *openPermission) bool { return o.id == p.ID }) {
				continue
			}
			if len(open) == maxPermissions {
				open[0].cancel()
				open = slices.Delete(open, 0, 1)
			}
			asking, cancel := context.WithCancel(ctx)
			o := &openPermission{p.ID, cancel}
			open = append(open, o)
			working.Go(func() {
				b.ask(asking, p)
				select {
				case answered <- o:
				case <-asking.Done():
				}
			})
		}
	}
}

// ask asks the person for p, and tells the coding session the answer. Anything but a yes is none.
func (b *Bridge) ask(ctx context.Context, p permission) {
	result, err := b.call(ctx, "ask_person", map[string]any{
		"question": p.question(b.Channel), "choices": []string{allow, deny},
	}, nil)
	var got personOutput
	if err != nil || result.IsError || remarshal(result.StructuredContent, &got) != nil {
		return // the session still asks whoever sits in front of it
	}
	behavior := "deny"
	if got.Choice == allow {
		behavior = "allow"
	}
	_ = b.conn.notify(ctx, permissionMethod, map[string]any{"request_id": p.ID, "behavior": behavior})
}

// A channelTransport is a transport whose connection speaks the channel extension as well.
type channelTransport struct {
	inner mcp.Transport
	conn  *channelConn
}

// Connect implements [mcp.Transport].
func (t channelTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	t.conn.inner = inner
	return t.conn, err
}

// A channelConn is a connection that takes out the notifications of the channel extension.
type channelConn struct {
	inner mcp.Connection
	asked chan permission
	ended chan struct{} // closed when nothing more comes
	once  sync.Once
}

// Read implements [mcp.Connection].
func (c *channelConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.inner.Read(ctx)
		if err != nil {
			c.once.Do(func() { close(c.ended) })
			return m, err
		}
		r, ok := m.(*jsonrpc.Request)
		if !ok || r.Method != permissionRequest {
			return m, nil
		}
		var p permission
		if json.Unmarshal(r.Params, &p) != nil || p.ID == "" {
			continue
		}
		select {
		case c.asked <- p:
		default: // too many: the session still asks whoever sits in front of it
		}
	}
}

// Write implements [mcp.Connection].
func (c *channelConn) Write(ctx context.Context, m jsonrpc.Message) error {
	return c.inner.Write(ctx, m)
}

// Close implements [mcp.Connection].
func (c *channelConn) Close() error { return c.inner.Close() }

// SessionID implements [mcp.Connection].
func (c *channelConn) SessionID() string { return c.inner.SessionID() }

// notify sends a notification of the extension.
func (c *channelConn) notify(ctx context.Context, method string, params any) error {
	b, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.inner.Write(ctx, &jsonrpc.Request{Method: method, Params: b})
}
