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
	maxTextMessages = 10        // that one reply becomes; the rest of it is in a file
	maxShownBytes   = 256 << 10 // of a reply of which such messages are made
	keepAnswers     = 30 * 24 * time.Hour
	pruneInterval   = 24 * time.Hour

	answersFolder   = "answers" // in the inbox of a person
	answerType      = "text/markdown"
	answerExtension = ".md"
)

// answerFiles are the files in the workspace that hold whole replies, because they
// were too long for messages.
type answerFiles struct{ files *workspace.Workspace }

// firstLines returns the first lines of text, at most so many bytes.
func firstLines(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	head := strings.ToValidUTF8(text[:maxBytes], "")
	if end := strings.LastIndexByte(head, '\n'); end > maxBytes/2 {
		head = head[:end]
	}
	return head
}

// overflowFile returns the file that holds all of r if r is too long for messages. It
// is in the inbox of the person whom r is for, or of the chat if that is not known, so
// that nobody else can read it.
func overflowFile(r chat.Reply) chat.File {
	who := cmp.Or(r.For, chat.Person(r.To.Channel+":"+r.To.Chat))
	name := fmt.Sprintf("answer-%.6x%s", sha256.Sum256([]byte(r.ID)), answerExtension)
	return chat.File{Path: path.Join(who.InboxFolder(), answersFolder, name), Type: answerType}
}

// IsWholeAnswer reports whether the file called name holds the whole of a reply that
// was too long for messages (see overflowFile).
func IsWholeAnswer(name string) bool {
	return path.Base(path.Dir(name)) == answersFolder && strings.HasPrefix(name, chat.Inbox+"/")
}

// isOverflow reports whether part is the file with all of the reply.
func (d *delivery) isOverflow(part chat.Reply) bool {
	return len(part.Files) == 1 && part.Files[0] == overflowFile(d.reply)
}

// putOverflow makes message i the file with all of the reply, which is part. If the
// network accepts no file, the message says instead where the file is kept.
func (d *delivery) putOverflow(ctx context.Context, i int, part chat.Reply) error {
	ob := d.outbox
	file := part.Files[0].Path
	note := part
	note.Files = nil
	note.Text = strings.Join(ob.channel.(Splitter).Split(ob.render.texts.Files.RestKept.With(file)), "\n")
	isSent := func(p chat.Reply) bool { return i < len(d.record.Sent) && d.record.Sent[i].Says == digest(p) }
	if isSent(note) || isSent(part) {
		return nil
	}
	if err := ob.answers.save(file, d.reply.Text); err != nil {
		return fmt.Errorf("keep the whole answer: %w", err)
	}
	err := d.putPart(ctx, i, part)
	if IsPermanent(err) {
		ob.log.Warn("the network accepts no file for the rest of an answer",
			"chat", d.reply.To.Session(), "path", file, "err", err)
		err = d.putPart(ctx, i, note)
	}
	return err
}

// save writes text to the file called name.
func (a answerFiles) save(name, text string) error {
	at, err := a.files.Named(name)
	if err != nil {
		return err
	}
	return a.files.WriteFile(at, []byte(text))
}

// prune deletes the files that are older than keepAnswers (P28).
func (a answerFiles) prune() error {
	if a.files == nil {
		return nil
	}
	inbox, err := a.files.Named(chat.Inbox)
	if err != nil {
		return err
	}
	return a.files.Walk(inbox, func(p workspace.Path, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !IsWholeAnswer(p.String()) {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err != nil || time.Since(info.ModTime()) < keepAnswers {
			return ignoreMissing(err)
		}
		return ignoreMissing(a.files.Remove(p))
	})
}

// ignoreMissing returns err, or nil for a file that does not exist.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// withoutOverflow returns those of parts that stay the same when the reply, which is
// still being written, becomes longer.
func withoutOverflow(parts []chat.Reply) []chat.Reply {
	file := slices.IndexFunc(parts, func(part chat.Reply) bool { return len(part.Files) > 0 })
	if file < 1 {
		return parts
	}
	return parts[:file-1]
}
