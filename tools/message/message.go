// Package message has the tools with which the agent speaks before its turn ends,
// or in another chat, and asks people questions.
package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"path"
	"strings"

	"parley/chat"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

type args struct {
	Text    string   `json:"text" jsonschema:"in Markdown" limit:"min=1"`
	Channel string   `json:"channel,omitempty"`
	Chat    string   `json:"chat,omitempty" jsonschema:"id of another chat"`
	Media   []string `json:"media,omitempty" jsonschema:"files of the workspace" limit:"max=10"`
	Buttons []string `json:"buttons,omitempty" jsonschema:"short answers" limit:"max=10"`
	Reply   bool     `json:"reply,omitempty" jsonschema:"quote the message that you answer"`
}

const description = "Say something before your work is done, or in another chat. It is the only way to send files " +
	"(media): read_file shows them only to you. The choice of a button comes later, as a message. Your final answer " +
	"is sent without this tool: do not say it twice."

var errNoTarget = errors.New("No target channel/chat specified") //nolint:staticcheck // the words of D-087

// New returns the tool message. With it, owners may have the agent speak in any
// chat, and other people only in their own (R-S23). If send is nil, the tool
// reports that it is not configured.
func New(send chat.Send) tools.Tool {
	t := tools.New("message", description, func(ctx context.Context, c tools.Call, in args) (tools.Result, error) {
		to, err := target(c.At, in)
		if err != nil {
			return tools.Result{}, err
		}
		if to != c.At && c.From.Role != chat.Owner {
			return tools.Failf(tools.CodeDenied,
				"only an owner may send to %s: leave out channel and chat to send to this chat", to.Session()), nil
		}
		if wrong := unclear(in.Buttons); wrong != "" {
			return tools.Failf(tools.CodeInvalid, "%s: nothing was sent", wrong), nil
		}
		files, err := attach(c, in.Media)
		if err != nil {
			return tools.Result{}, err
		}
		if send == nil {
			return tools.Failf(tools.CodeError, "Message sending not configured"), nil // D-087
		}
		r := reply(c, to, in)
		for _, at := range files {
			r.Files = append(r.Files,
				chat.File{Path: at.String(), Name: at.Base(), Type: mime.TypeByExtension(path.Ext(at.Base()))})
		}
		if err := send(ctx, r); err != nil {
			return tools.Result{}, fmt.Errorf("send to %s: %w", to.Session(), err)
		}
		result := sent(c, r)
		result.TaintBy(c.Scope, files...)
		return result, nil
	})
	t.Preview = preview
	t.Speaks = func(partial map[string]any) bool { return partial["channel"] == nil && partial["chat"] == nil }
	t.Guard = elsewhere
	t.Effect = func(c tools.Call) string {
		to, _ := target(c.At, where(c.Input))
		what := "a message"
		// Approval of a text does not include files, nor that of a file other files.
		if media, _ := c.Input["media"].([]any); len(media) > 0 {
			what = "the files " + strings.Join(tools.TextsOf(media), ", ")
		}
		return "send " + what + " to " + string(to.Session())
	}
	t.Ask = asking
	t.Category = "message"
	t.Repeatable = true // a reply whose ID was sent before is dropped
	t.Aliases = map[string]string{
		"content": "text", "message": "text", "chat_id": "chat", "to": "chat", "files": "media", "attachments": "media",
	}
	return t
}

// asking says what c would send, and where.
func asking(say texts.Asks, c tools.Call) tools.Sentence {
	to, _ := target(c.At, where(c.Input))
	chat := tools.Named(strings.TrimPrefix(string(to.Session()), to.Channel+":"))
	media, _ := c.Input["media"].([]any)
	if len(media) == 0 {
		return tools.Asking(say.SendTo, chat, tools.Named(to.Channel))
	}
	names := tools.Named(strings.Join(tools.TextsOf(media), ", "))
	return tools.AskingOf(say.SendFiles, len(media), names, chat, tools.Named(to.Channel))
}

// reply returns the message that in describes, for another chat or this one. Only
// in this chat can it quote the message that the turn answers (D-088) and restrict
// who may press a button.
func reply(c tools.Call, to chat.Address, in args) chat.Reply {
	r := chat.Reply{ID: chat.ToolReplyID(c.Key()), To: to, Text: in.Text}
	if len(in.Buttons) > 0 {
		r.Ask = &chat.Question{ID: questionID(c), Choices: in.Buttons, Free: true, Say: true}
	}
	if to != c.At {
		return r
	}
	r.Group = c.Group
	r.For = c.Whose()
	if in.Reply {
		r.Quote = c.Message
		r.Group = true // in private chats, replies are not quoted otherwise
	}
	if r.Ask != nil {
		r.Ask.Whom = c.From.ID
	}
	return r
}

// elsewhere reports whether c speaks in another chat (R-S12). People who must not
// do that at all get an error instead, and nobody is asked.
func elsewhere(c tools.Call) bool {
	to, err := target(c.At, where(c.Input))
	return err == nil && to != c.At && c.From.Role == chat.Owner
}

func where(input map[string]any) (in args) {
	in.Channel, _ = input["channel"].(string)
	if id := input["chat"]; id != nil {
		in.Chat = fmt.Sprint(id)
	}
	return in
}

// preview returns the target, unless it is this chat, and the beginning of the
// text: "to telegram:42: Hello…".
func preview(say texts.Steps, partial map[string]any) string {
	in := where(partial)
	text, _ := partial["text"].(string)
	text = chat.Clip(chat.OneLine(text), 40, "…")
	if in.Channel == "" && in.Chat == "" {
		return text
	}
	to, _ := target(chat.Address{Channel: in.Channel}, in)
	return strings.TrimSuffix(say.To.With(strings.Trim(string(to.Session()), ":"), text), ": ")
}

// sent returns the result of sending r (D-087).
func sent(c tools.Call, r chat.Reply) tools.Result {
	result := tools.Result{Text: fmt.Sprintf("Message sent to %s", r.To.Session())}
	if n := len(r.Files); n > 0 {
		result.Text += fmt.Sprintf(" with %d attachments", n)
	}
	if r.To == c.At {
		result.Told = r.Text
	}
	return result
}

// attach returns the files of the workspace at paths. Each must be a regular file
// that belongs to no other conversation, or nothing is sent (D-089, R-S18, R-S23).
func attach(c tools.Call, paths []string) (files []workspace.Path, err error) {
	for _, text := range paths {
		at, err := locate(c, text)
		if err != nil {
			return nil, fmt.Errorf("media path is not allowed: %w", err)
		}
		files = append(files, at)
	}
	return files, nil
}

func locate(c tools.Call, text string) (workspace.Path, error) {
	if c.Workspace == nil {
		return workspace.Path{}, errors.New(text)
	}
	at, err := tools.Resolve(c, text)
	if err != nil {
		return at, err
	}
	f, err := c.Workspace.Open(at)
	if err != nil {
		return at, err
	}
	return at, f.Close() // opening it was only a check
}

// target returns the chat to speak in: the one that in names, or here. A chat may
// be written like a session: "telegram:42", "telegram:-100/7".
func target(here chat.Address, in args) (chat.Address, error) {
	channel, id := in.Channel, in.Chat
	if i := strings.LastIndexByte(id, ':'); i >= 0 && (channel == "" || channel == id[:i]) {
		channel, id = id[:i], id[i+1:]
	}
	to := chat.Address{Channel: cmp.Or(channel, here.Channel)}
	to.Chat, to.Thread, _ = strings.Cut(id, "/")
	if to.Channel == here.Channel && (in.Chat == "" || to.Chat == here.Chat && to.Thread == "") {
		to = here
	}
	if to.Channel == "" || to.Chat == "" {
		return to, errNoTarget
	}
	return to, nil
}
