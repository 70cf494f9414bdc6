package discord

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/channels"
	"parley/channels/network"
	"parley/channels/safetext"
	"parley/chat"
	"parley/texts"
)

const noPreviewFlag = 1 << 2 // links are not unfurled (R-S13)

// A sender sends messages and changes those that were sent.
type sender struct {
	api       *botAPI
	directory *directory
	open      func(path string) (*os.File, error)
	texts     *texts.Channels
	log       *slog.Logger
}

// send sends one message.
func (s *sender) send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	to, err := s.directory.channelID(ctx, r.To)
	if err != nil {
		return "", s.api.channelError("find the chat", err)
	}
	rc, err := s.post(ctx, to, r)
	return rc, s.api.channelError("send", err)
}

// post sends r to a channel.
func (s *sender) post(ctx context.Context, to string, r chat.Reply) (channels.Receipt, error) {
	fields := messageFields(r)
	fields["nonce"] = nonce(r.ID)
	fields["enforce_nonce"] = true
	if id := originalID(r.Quote); id != "" && r.Group {
		fields["message_reference"] = map[string]any{"message_id": id, "fail_if_not_exists": false}
	}
	body := any(fields)
	if len(r.Files) > 0 {
		withFiles, closeFiles := s.newUpload(fields, r)
		defer closeFiles()
		body = withFiles
	}
	var sent struct {
		ID   string `json:"id"`
		Text string `json:"content"`
	}
	err := s.api.call(ctx, "POST", "/channels/"+to+"/messages", body, &sent)
	if len(r.Files) > 0 && hasCode(err, codeTooLarge, http.StatusRequestEntityTooLarge) {
		return s.post(ctx, to, s.withoutFiles(r))
	}
	if err != nil {
		return "", err
	}
	rc := newReceipt(to, sent.ID)
	if len(r.Files) == 0 && strings.TrimSpace(sent.Text) != strings.TrimSpace(r.Text) {
		return rc, s.edit(ctx, rc, r) // an earlier attempt, whose answer was lost, had less text
	}
	return rc, nil
}

// withoutFiles returns r with notices in place of its files, which Discord rejected.
func (s *sender) withoutFiles(r chat.Reply) chat.Reply {
	for _, f := range r.Files {
		reason := s.texts.Files.Refused.With(safetext.FileName(path.Base(f.Path)))
		r.Text += "\n" + network.Lost(s.texts.Files, f, reason)
	}
	r.Files = nil
	return r
}

// messageFields are the fields that new messages and edits have.
func messageFields(r chat.Reply) map[string]any {
	return map[string]any{
		"content":          r.Text,
		"flags":            noPreviewFlag,
		"allowed_mentions": noMentions(),
		"components":       newButtons(r.Ask),
	}
}

// noMentions lets a message notify nobody but the author of the message it answers.
func noMentions() map[string]any { return map[string]any{"parse": []string{}, "replied_user": true} }

// nonce is how Discord recognises, for a few minutes, a message that is sent again.
func nonce(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:12])
}

// edit makes the message of rc say r.
func (s *sender) edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	path, err := messagePath(rc)
	if err != nil {
		return err
	}
	return s.api.call(ctx, "PATCH", path, messageFields(r), nil)
}

func (s *sender) deleteMessage(ctx context.Context, rc channels.Receipt) error {
	path, err := messagePath(rc)
	if err != nil {
		return s.api.channelError("delete", err)
	}
	err = s.api.call(ctx, "DELETE", path, nil, nil)
	if hasCode(err, codeUnknownMessage) {
		return nil
	}
	return s.api.channelError("delete", err)
}

func (s *sender) showTyping(ctx context.Context, at chat.Address) error {
	to, err := s.directory.channelID(ctx, at)
	if err != nil {
		return s.api.channelError("show typing", err)
	}
	err = s.api.call(ctx, "POST", "/channels/"+to+"/typing", nil, nil)
	return s.api.channelError("show typing", err)
}

// marks in the order in which they are set, and the emoji that show them.
var (
	marks     = []channels.Mark{channels.Seen, channels.Working, channels.Done}
	markEmoji = []string{"👀", "⚙️", "✅"}
)

// react sets the mark m and removes those that come before it.
func (s *sender) react(ctx context.Context, at chat.Address, message string, m channels.Mark) error {
	id := originalID(message)
	n := slices.Index(marks, m)
	if id == "" || n < 0 {
		return nil
	}
	to, err := s.directory.channelID(ctx, at)
	if err != nil {
		return s.api.channelError("react", err)
	}
	reactions := "/channels/" + to + "/messages/" + id + "/reactions/"
	err = s.api.call(ctx, http.MethodPut, reactions+url.PathEscape(markEmoji[n])+"/@me", nil, nil)
	for i := n - 1; i >= 0 && err == nil; i-- {
		err = s.api.call(ctx, http.MethodDelete, reactions+url.PathEscape(markEmoji[i])+"/@me", nil, nil)
		if hasCode(err, 400, 404) { // it was not set
			err = nil
		}
	}
	return s.api.channelError("react", err)
}

// The buttons that a message can have.
const (
	maxChoices = 25
	maxRow     = 5
	maxLabel   = 80 // runes
)

// newButtons returns the rows of buttons below a question.
func newButtons(q *chat.Question) []any {
	const rowType, buttonType, greyStyle = 1, 2, 2
	rows := []any{}
	if q == nil {
		return rows
	}
	var buttons []any
	for i, choice := range q.Choices[:min(len(q.Choices), maxChoices)] {
		label := cmp.Or(chat.Shorten(chat.OneLine(choice), maxLabel), strconv.Itoa(i+1))
		buttons = append(buttons, map[string]any{
			"type": buttonType, "style": greyStyle, "label": label, "custom_id": network.Button(q, i),
		})
	}
	for row := range slices.Chunk(buttons, maxRow) {
		rows = append(rows, map[string]any{"type": rowType, "components": row})
	}
	return rows
}
