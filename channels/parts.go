package channels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"parley/chat"
	"parley/panics"
)

// parts returns the messages that r has to be sent as.
func (l *line) parts(r chat.Reply) (parts []chat.Reply, err error) {
	if worded := l.worded(r); strings.TrimSpace(worded.Text) == "" && len(r.Files) == 0 {
		if _, streams := l.Channel.(Streamer); streams {
			return []chat.Reply{worded}, nil
		}
		return nil, nil
	}
	err = panics.Try(func() error {
		if s, ok := l.Channel.(Splitter); ok {
			parts = l.split(s, r)
		} else {
			parts = []chat.Reply{l.summed(l.worded(r))}
		}
		return nil
	})
	return parts, err
}

// Parts returns the messages that r has to be sent as by c: each with an ID of
// its own, the first with the quote, the last of text with the question. Text
// goes before files, which cannot take the place of a message that was streamed.
func Parts(c Channel, r chat.Reply) (parts []chat.Reply) {
	s, ok := c.(Splitter)
	if !ok {
		return []chat.Reply{r}
	}
	return assemble(s, r, s.Split(r.Text))
}

// assemble returns the messages with texts and the files of r; those of alone
// come before, each in a message of its own.
func assemble(s Splitter, r chat.Reply, texts []string, alone ...chat.File) (parts []chat.Reply) {
	add := func(text string, files []chat.File) {
		part := r
		if part.Text, part.Files, part.Ask = text, files, nil; len(parts) > 0 {
			part.ID, part.Quote = fmt.Sprintf("%s#%d", r.ID, len(parts)+1), ""
		}
		parts = append(parts, part)
	}
	for _, text := range texts {
		add(text, nil)
	}
	for _, file := range alone {
		add("", []chat.File{file})
	}
	for _, files := range s.Group(r.Files) {
		add("", files)
	}
	if len(parts) > 0 {
		parts[asking(parts)].Ask = r.Ask
	}
	return parts
}

// digest tells what r says from what others say.
func digest(r chat.Reply) string {
	says := fmt.Append(nil, r.Text, r.Files)
	if r.Ask != nil {
		says = fmt.Append(says, r.Ask.ID)
	}
	sum := sha256.Sum256(says)
	return hex.EncodeToString(sum[:8])
}
