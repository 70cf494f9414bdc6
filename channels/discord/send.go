package discord

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"slices"
	"strings"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
)

const (
	maxUpload = 10 << 20 // bytes of one file; more where people pay
	noPreview = 1 << 2   // a flag: links are not unfurled (R-S13)
)

// What Discord calls its refusals.
const (
	noSuchChannel = 10003
	noSuchMessage = 10008
	tooLarge      = 40005
)

// nobody lets a message ping nobody.
func nobody() map[string]any { return map[string]any{"parse": []string{}, "replied_user": true} }

func receipt(at, id string) channels.Receipt { return channels.Receipt(at + "/" + id) }

// pathOf returns where the API has the message of rc.
func pathOf(rc channels.Receipt) (string, error) {
	at, id, _ := strings.Cut(string(rc), "/")
	if !snowflake.MatchString(at) || !snowflake.MatchString(id) {
		return "", channels.ForGood("%q is no receipt of discord", rc)
	}
	return "/channels/" + at + "/messages/" + id, nil
}

// Send sends one message.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	to, err := c.target(ctx, r.To)
	if err != nil {
		return "", c.refused("find the chat", err)
	}
	rc, err := c.say(ctx, to, r)
	return rc, c.refused("send", err)
}

// say sends r to a channel.
func (c *Channel) say(ctx context.Context, to string, r chat.Reply) (channels.Receipt, error) {
	m := content(r)
	m["nonce"], m["enforce_nonce"] = nonce(r.ID), true
	if id := original(r.Quote); id != "" && r.Group {
		m["message_reference"] = map[string]any{"message_id": id, "fail_if_not_exists": false}
	}
	var sent struct {
		ID   string `json:"id"`
		Text string `json:"content"`
	}
	in := any(m)
	if len(r.Files) > 0 {
		var end func()
		in, end = c.upload(m, r)
		defer end()
	}
	err := c.call(ctx, "POST", "/channels/"+to+"/messages", in, &sent)
	if len(r.Files) > 0 && said(err, tooLarge, http.StatusRequestEntityTooLarge) {
		for _, f := range r.Files {
			r.Text += "\n" + network.Lost(c.cfg.Texts.Files, f, c.cfg.Texts.Files.Refused.With(channels.SafeName(path.Base(f.Path))))
		}
		r.Files = nil
		return c.say(ctx, to, r)
	}
	if err != nil {
		return "", err
	}
	rc := receipt(to, sent.ID)
	if len(r.Files) == 0 && strings.TrimSpace(sent.Text) != strings.TrimSpace(r.Text) { // an earlier attempt, whose answer was lost, said less
		return rc, c.edit(ctx, rc, r)
	}
	return rc, nil
}

// content is what a message says, in new ones and in edits.
func content(r chat.Reply) map[string]any {
	return map[string]any{"content": r.Text, "flags": noPreview, "allowed_mentions": nobody(), "components": keys(r.Ask)}
}

// nonce is what Discord knows a message by that it is sent again. It is good
// for a few minutes.
func nonce(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:12])
}

// original returns the id that Discord knows of a message, which may be the correction of another.
func original(id string) string {
	id, _, _ = strings.Cut(id, "e")
	if !snowflake.MatchString(id) {
		return ""
	}
	return id
}

// target returns the channel to write to, which for a person is opened first.
func (c *Channel) target(ctx context.Context, a chat.Address) (string, error) {
	id := cmp.Or(a.Thread, a.Chat)
	person, direct := strings.CutPrefix(id, "@")
	if !snowflake.MatchString(person) {
		return "", channels.ForGood("%q is no chat of discord", a.Session())
	}
	if !direct {
		return id, nil
	}
	return c.known(c.direct, person, func() (string, error) {
		var opened struct {
			ID string `json:"id"`
		}
		err := c.call(ctx, "POST", "/users/@me/channels", map[string]string{"recipient_id": person}, &opened)
		if err == nil && !snowflake.MatchString(opened.ID) {
			err = errors.New("the server names no chat")
		}
		if in := c.in.Load(); in != nil && err == nil {
			in.notePrivateChat(ctx, opened.ID)
		}
		return opened.ID, err
	})
}

// upload returns the body of a message with files, which end closes. Files that
// cannot go are told of in its text.
func (c *Channel) upload(m map[string]any, r chat.Reply) (in any, end func()) {
	var parts []io.Reader
	var head bytes.Buffer // what stands before the next part
	form, b := multipart.NewWriter(&head), &body{}
	add := func(about, kind string, r io.Reader, size int64) {
		_, _ = form.CreatePart(textproto.MIMEHeader{"Content-Disposition": {about}, "Content-Type": {kind}}) // into memory
		parts = append(parts, strings.NewReader(head.String()), io.LimitReader(r, size))
		b.size += int64(head.Len()) + size
		head.Reset()
	}
	ups, lost := network.OpenAll(c.cfg.Texts.Files, r.Files, maxUpload, c.cfg.Open, c.log)
	for i, u := range ups {
		add(multipart.FileContentDisposition(fmt.Sprintf("files[%d]", i), u.Name),
			cmp.Or(u.Of.Type, mime.TypeByExtension(path.Ext(u.Of.Path)), "application/octet-stream"), u.File, u.Size)
	}
	end = func() {
		for _, u := range ups {
			u.File.Close()
		}
	}
	m["content"] = strings.TrimSpace(r.Text + "\n" + lost)
	if len(ups) == 0 {
		return m, end
	}
	raw, _ := json.Marshal(m) // of texts and numbers
	add(`form-data; name="payload_json"`, "application/json", bytes.NewReader(raw), int64(len(raw)))
	_ = form.Close()
	b.kind, b.size = form.FormDataContentType(), b.size+int64(head.Len())
	b.Reader = io.MultiReader(append(parts, &head)...)
	return b, end
}

// Edit makes the message of rc say r.
func (c *Channel) Edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	return c.refused("edit", c.edit(ctx, rc, r))
}

func (c *Channel) edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	path, err := pathOf(rc)
	if err != nil {
		return err
	}
	return c.call(ctx, "PATCH", path, content(r), nil)
}

// Delete takes the message of rc back.
func (c *Channel) Delete(ctx context.Context, _ chat.Address, rc channels.Receipt) error {
	path, err := pathOf(rc)
	if err == nil {
		err = c.call(ctx, "DELETE", path, nil, nil)
	}
	if said(err, noSuchMessage) {
		return nil
	}
	return c.refused("delete", err)
}

// Typing shows "typing" for ten seconds.
func (c *Channel) Typing(ctx context.Context, at chat.Address) error {
	to, err := c.target(ctx, at)
	if err == nil {
		err = c.call(ctx, "POST", "/channels/"+to+"/typing", nil, nil)
	}
	return c.refused("show typing", err)
}

// React implements channels.Reactor.
func (c *Channel) React(ctx context.Context, at chat.Address, message string, m channels.Mark) error {
	marks := []channels.Mark{channels.Seen, channels.Working, channels.Done}
	signs := []string{"👀", "⚙️", "✅"}
	id, n := original(message), slices.Index(marks, m)
	if !c.cfg.Reactions || id == "" || n < 0 {
		return nil
	}
	to, err := c.target(ctx, at)
	for i := n; i >= 0 && err == nil; i-- {
		method := http.MethodPut
		if i < n {
			method = http.MethodDelete
		}
		err = c.call(ctx, method, "/channels/"+to+"/messages/"+id+"/reactions/"+url.PathEscape(signs[i])+"/@me", nil, nil)
		if i < n && said(err, 400, 404) { // was not there
			err = nil
		}
	}
	return c.refused("react", err)
}

// Fetch implements channels.Fetcher. The message is asked for anew: the
// addresses of its files are good for a day.
func (c *Channel) Fetch(ctx context.Context, _ chat.Message, f chat.File) (io.ReadCloser, error) {
	ref := strings.Split(f.Ref, "/")
	if len(ref) != 3 || slices.ContainsFunc(ref, func(id string) bool { return !snowflake.MatchString(id) }) {
		return nil, channels.ForGood("%q names no file of discord", f.Ref)
	}
	var w message
	if err := c.call(ctx, "GET", "/channels/"+ref[0]+"/messages/"+ref[1], nil, &w); err != nil {
		return nil, c.refused("find the file", err)
	}
	all := w.Files
	for _, p := range w.Passed {
		all = append(all, p.Message.Files...)
	}
	i := slices.IndexFunc(all, func(a file) bool { return a.ID == ref[2] })
	if i < 0 {
		return nil, channels.ForGood("the file is no longer in its message")
	}
	return network.Download(ctx, c.http, all[i].URL)
}
