package channels

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/workspace"
)

const (
	maxTexts    = 10        // messages with text that one reply becomes; the rest of it is in a file
	maxShown    = 256 << 10 // bytes of a reply of which such messages are made
	answersDir  = "answers" // in the inbox of a person: whole replies that were too long for messages
	keepAnswers = 30 * 24 * time.Hour
	pruneEvery  = 24 * time.Hour

	answerType      = "text/markdown"
	answerExtension = ".md"
)

// split returns the messages that r has to be sent as by s, an own channel of
// which is l. A reply that would be too many ends with a note and the file that
// overflowFile names, which need not exist before it is sent. The same reply
// gives the same messages, so that a delivery goes on after a restart.
func (l *line) split(s Splitter, r chat.Reply) []chat.Reply {
	whole := l.summed(l.worded(r))
	if l.hub.cfg.Files == nil {
		return assemble(s, whole, s.Split(whole.Text))
	}
	head := beginning(whole.Text, maxShown)
	messages := s.Split(head)
	if head == whole.Text && len(messages) <= maxTexts {
		return assemble(s, whole, messages)
	}
	rest := r
	rest.Text = l.hub.cfg.Texts.Files.Rest
	rest = l.worded(rest)
	messages = append(messages[:min(len(messages), maxTexts-1)], s.Split(rest.Text)...)
	return assemble(s, rest, messages, overflowFile(r))
}

// beginning returns text up to the end of a line, and at most so many bytes.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head := strings.ToValidUTF8(text[:most], "")
	if end := strings.LastIndexByte(head, '\n'); end > most/2 {
		head = head[:end]
	}
	return head
}

// overflowFile is the file that holds all of r if r is too long for messages. It
// is in the inbox of the person whom r is for, or of the chat if nobody knows
// whose that is, and so it is for nobody else.
func overflowFile(r chat.Reply) chat.File {
	who := cmp.Or(r.For, chat.Person(r.To.Channel+":"+r.To.Chat))
	name := fmt.Sprintf("answer-%.6x%s", sha256.Sum256([]byte(r.ID)), answerExtension)
	return chat.File{Path: path.Join(who.InboxFolder(), answersDir, name), Type: answerType}
}

// IsWholeAnswer reports whether the file called name holds the whole of a reply that
// was too long for messages (see overflowFile).
func IsWholeAnswer(name string) bool {
	return path.Base(path.Dir(name)) == answersDir && strings.HasPrefix(name, chat.Inbox+"/")
}

// isOverflow reports whether part, of the delivery, is the file with all of the reply.
func (d *delivery) isOverflow(part chat.Reply) bool {
	return len(part.Files) == 1 && part.Files[0] == overflowFile(d.reply)
}

// putOverflow makes message i say part, which is the file with all of the reply.
// A network that takes no file is told, instead, where it is kept.
func (d *delivery) putOverflow(ctx context.Context, i int, part chat.Reply) error {
	kept := part
	kept.Files = nil
	kept.Text = strings.Join(d.line.Channel.(Splitter).Split(d.line.hub.cfg.Texts.Files.RestKept.With(part.Files[0].Path)), "\n")
	sent := func(p chat.Reply) bool { return i < len(d.Sent) && d.Sent[i].Says == digest(p) }
	if sent(kept) || sent(part) {
		return nil
	}
	if err := d.line.hub.saveAnswer(part.Files[0].Path, d.reply.Text); err != nil {
		return fmt.Errorf("keep the whole answer: %w", err)
	}
	err := d.putPart(ctx, i, part)
	if IsPermanent(err) {
		d.line.log.Warn("the network takes no file for the rest of an answer", "chat", d.reply.To.Session(), "path", part.Files[0].Path, "err", err)
		err = d.putPart(ctx, i, kept)
	}
	return err
}

// saveAnswer makes text the contents of the file called name.
func (h *Hub) saveAnswer(name, text string) error {
	at, err := h.cfg.Files.Named(name)
	if err != nil {
		return err
	}
	return h.cfg.Files.WriteFile(at, []byte(text))
}

// pruneAnswers removes the whole answers that are older than keepAnswers (P28).
func (h *Hub) pruneAnswers() error {
	if h.cfg.Files == nil {
		return nil
	}
	inbox, err := h.cfg.Files.Named(chat.Inbox)
	if err != nil {
		return err
	}
	return h.cfg.Files.Walk(inbox, func(p workspace.Path, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !IsWholeAnswer(p.String()) {
			return err
		}
		info, err := d.Info()
		if err == nil && time.Since(info.ModTime()) >= keepAnswers {
			err = h.cfg.Files.Remove(p)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// withoutOverflow returns those of parts, which are of a reply that is still
// being made, that stay as they are when it is longer.
func withoutOverflow(parts []chat.Reply) []chat.Reply {
	file := slices.IndexFunc(parts, func(part chat.Reply) bool { return len(part.Files) > 0 })
	if file < 1 {
		return parts
	}
	return parts[:file-1]
}
