// Package oversight is what owners see of the calls of tools and decide about them:
// approvals, the audit log, the bytes that people write, and statistics.
package oversight

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode"

	"parley/chat"
	"parley/texts"
	"parley/tools"
)

// The choices of a question, in their order.
const (
	choiceYes = iota
	choiceNo
	choiceConversation // yes to all calls like it until the conversation ends
	choiceHour
)

// An Approver asks owners whether a call may be made.
type Approver struct {
	Ask      func(ctx context.Context, r chat.Reply) (choice int, text string, by chat.Sender, err error)
	Withdraw func(ctx context.Context, question string) error
	Office   func() (at chat.Address, ok bool) // where an owner can be written to first
	Texts    texts.Approval
	Log      *slog.Logger

	// Grant notes that an owner has approved all calls like c: for an hour, or else
	// until the conversation ends.
	Grant func(ctx context.Context, c tools.Call, by string, hour bool) error
}

// Approve is a [tools.Asker]. If an owner wants the call, that owner is asked in the
// same chat; otherwise an owner is asked where one can be written to first.
func (a Approver) Approve(ctx context.Context, c tools.Call, prompt string) (yes bool, by string, err error) {
	r, err := a.question(c, prompt)
	if err != nil {
		return false, "", err
	}
	choice, _, sender, err := a.Ask(ctx, r)
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), tools.ErrClosing) {
		err = errors.Join(err, a.Withdraw(context.WithoutCancel(ctx), r.Ask.ID))
	}
	by = r.To.Channel + ":" + sender.ID
	if err != nil {
		return false, by, err
	}
	if choice == choiceConversation || choice == choiceHour {
		if err := a.Grant(ctx, c, by, choice == choiceHour); err != nil { // it still counts for this call
			a.Log.Error("an approval counts only once, because it could not be kept", "err", err)
		}
	}
	return choice != choiceNo, by, nil
}

// keyOf names c and what it may do.
func keyOf(c tools.Call) string {
	if c.Consequence == "" {
		return c.Key()
	}
	return c.Key() + fmt.Sprintf("/%.4x", sha256.Sum256([]byte(c.Consequence)))
}

// QuestionID returns the ID of the question whether c may be made.
func QuestionID(c tools.Call) string {
	return fmt.Sprintf("%.8x", sha256.Sum256([]byte("approve "+keyOf(c))))
}

// question returns the message that asks about c. Its IDs follow from the call and what comes of it, so
// that nobody is asked twice, and no answer counts for more than the person was told.
func (a Approver) question(c tools.Call, prompt string) (chat.Reply, error) {
	key := keyOf(c)
	q := &chat.Question{
		ID:       QuestionID(c),
		Choices:  []string{a.Texts.Yes, a.Texts.No},
		Whom:     c.From.ID,
		Asker:    c.Asker(),
		Approval: true,
	}
	r := chat.Reply{ID: "ask:approve/" + key, To: c.At, Group: c.Group, Text: a.withAsker(c, prompt), Ask: q}
	if c.From.Role == chat.Owner {
		c.Say(a.Texts.WaitingForYou)
		if c.Effect != "" { // untrusted content brought it up
			q.Choices = append(q.Choices, a.Texts.Conversation, a.Texts.Hour)
		}
		return r, nil
	}
	office, ok := a.Office()
	if !ok {
		return r, errors.New("no owner can be asked")
	}
	q.Whom = ""
	q.Asker = who(c)
	r.To = office
	r.Group = false
	c.Say(a.Texts.WaitingForOwner)
	return r, nil
}

// maxName is how many characters of what a person calls themselves are shown.
const maxName = 40

// who returns who wants c: what that person calls themselves, without anything that could pass for more than a name,
// the address that they write from, and the job or task of theirs that is at work.
func who(c tools.Call) string {
	address := c.At.Channel + ":" + c.From.ID
	name := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r), strings.ContainsRune(".'-", r):
			return r
		}
		return ' '
	}, c.From.Name)
	text := address
	if name = chat.Shorten(chat.OneLine(name), maxName); name != "" {
		const isolate, end = "\u2068", "\u2069" // the address keeps its order after letters that run from right to left
		if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x590 }) {
			name = isolate + name + end
		}
		text = name + " (" + address + ")"
	}
	if task := c.Asker(); task != "" {
		text += ": " + task
	}
	return text
}

// withAsker returns prompt with who asks below its first paragraph, the question, unless it is the person
// who reads it.
func (a Approver) withAsker(c tools.Call, prompt string) string {
	name := tools.Named(cmp.Or(c.From.Name, c.From.ID))
	id := tools.Quoted(c.At.Channel + ":" + c.From.ID)
	var who []string
	switch {
	case c.From.Role != chat.Owner:
		who = append(who, a.Texts.ForThem.With(name, id, tools.Quoted(string(c.At.Session()))))
	case c.Group:
		who = append(who, a.Texts.ForOneOfUs.With(name, id))
	}
	if c.Job != "" {
		who = append(who, a.Texts.ForJob.With(tools.Named(c.Job)))
	}
	if c.Task != "" {
		who = append(who, a.Texts.ForSubagent.With(tools.Quoted(c.Task)))
	}
	if who == nil {
		return prompt
	}
	question, rest, _ := strings.Cut(prompt, "\n\n")
	return strings.TrimSpace(question + "\n\n" + strings.Join(who, " ") + "\n\n" + rest)
}
