package channels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"parley/chat"
	"parley/panics"
	"parley/texts"
)

// A renderer turns the replies to one channel into messages.
type renderer struct {
	channel     Channel
	texts       *texts.Channels
	showsSteps  bool // the messages themselves show the steps: the channel is an Editor
	cutsAnswers bool // a long answer becomes a beginning and a file
}

// parts returns the messages that r has to be sent as.
func (rr *renderer) parts(r chat.Reply) (parts []chat.Reply, err error) {
	if numbered := rr.withChoices(r); strings.TrimSpace(numbered.Text) == "" && len(r.Files) == 0 {
		if _, streams := rr.channel.(Streamer); streams {
			return []chat.Reply{numbered}, nil
		}
		return nil, nil
	}
	err = panics.Try(func() error {
		if s, ok := rr.channel.(Splitter); ok {
			parts = rr.split(s, r)
		} else {
			parts = []chat.Reply{rr.withStepsSummary(rr.withChoices(r))}
		}
		return nil
	})
	return parts, err
}

// split returns the messages that r has to be sent as by s, which is the channel. If
// there would be too many, the last two are a note and the file that overflowFile
// names; it need not exist before it is sent. The same reply gives the same messages,
// so that a delivery can continue after a restart.
func (rr *renderer) split(s Splitter, r chat.Reply) []chat.Reply {
	whole := rr.withStepsSummary(rr.withChoices(r))
	if !rr.cutsAnswers {
		return assemble(s, whole, s.Split(whole.Text))
	}
	head := firstLines(whole.Text, maxShownBytes)
	messages := s.Split(head)
	if head == whole.Text && len(messages) <= maxTextMessages {
		return assemble(s, whole, messages)
	}
	rest := r
	rest.Text = rr.texts.Files.Rest
	rest = rr.withChoices(rest)
	messages = append(messages[:min(len(messages), maxTextMessages-1)], s.Split(rest.Text)...)
	return assemble(s, rest, messages, overflowFile(r))
}

// Parts returns the messages that r has to be sent as by c. Each has an ID of its own;
// the first has the quote, and the last one with text has the question. Text comes
// before files, because a message with a file cannot replace one that was streamed.
func Parts(c Channel, r chat.Reply) (parts []chat.Reply) {
	s, ok := c.(Splitter)
	if !ok {
		return []chat.Reply{r}
	}
	return assemble(s, r, s.Split(r.Text))
}

// assemble returns the messages with texts and the files of r. The files in separate
// come first, each in a message of its own.
func assemble(s Splitter, r chat.Reply, texts []string, separate ...chat.File) (parts []chat.Reply) {
	add := func(text string, files []chat.File) {
		part := r
		part.Text = text
		part.Files = files
		part.Ask = nil
		if len(parts) > 0 {
			part.ID = fmt.Sprintf("%s#%d", r.ID, len(parts)+1)
			part.Quote = ""
		}
		parts = append(parts, part)
	}
	for _, text := range texts {
		add(text, nil)
	}
	for _, file := range separate {
		add("", []chat.File{file})
	}
	for _, files := range s.Group(r.Files) {
		add("", files)
	}
	if len(parts) > 0 {
		parts[askingPart(parts)].Ask = r.Ask
	}
	return parts
}

// askingPart returns the index of the part that asks the question of a reply: the last
// one with text.
func askingPart(parts []chat.Reply) int {
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i].Text != "" {
			return i
		}
	}
	return 0
}

// digest returns a short digest of what people see of r.
func digest(r chat.Reply) string {
	content := fmt.Append(nil, r.Text, r.Files)
	if r.Ask != nil {
		content = fmt.Append(content, r.Ask.ID)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}
