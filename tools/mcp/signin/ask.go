package signin

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"parley/chat"
	"parley/store"
	"parley/tools"
)

// askAt asks the person in the chat of scope to sign in, unless that was done before.
func (f *flow) askAt(scope tools.Scope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.asked {
		f.asked = true
		f.signIn.work.Go(func() { f.ask(scope) })
	}
}

// ask asks until the attempt has ended, and says how it did.
func (f *flow) ask(scope tools.Scope) {
	s := f.signIn
	say := s.config.Texts
	link, err := f.link(f.ctx)
	if err != nil {
		return // whoever waits is told
	}
	s.withdrawOld()
	text := say.Question.With(f.key.server, link)
	for try := 0; f.ctx.Err() == nil; try++ {
		q := &chat.Question{
			ID:      strings.ToLower(rand.Text()),
			Choices: []string{say.Cancel},
			Whom:    scope.From.ID,
			Free:    true,
		}
		reply := chat.Reply{ID: "signin:" + q.ID, To: scope.At, For: scope.Whose(), Text: text, Ask: q}
		index, answer, err := s.askOnce(f.ctx, reply)
		switch {
		case f.ctx.Err() != nil:
		case err != nil:
			s.config.Log.Warn("could not ask a person to sign in", "server", f.key.server, "err", err)
			f.cancel(err)
		case index >= 0:
			f.cancel(errRefused)
		case f.confirm(answer):
			f.tellEnd(scope)
			return
		default:
			text = say.WrongCode.With(f.key.server, link)
		}
	}
	<-f.done
	f.tellEnd(scope)
}

// askOnce asks a question. It is open no longer than ctx lasts, nor after a crash.
func (s *SignIn) askOnce(ctx context.Context, r chat.Reply) (index int, answer string, err error) {
	lasting := context.WithoutCancel(ctx)
	if _, err := s.bucket().Put(lasting, questionPrefix+r.Ask.ID, []byte("open"), store.Any); err != nil {
		return 0, "", fmt.Errorf("note a question: %w", err)
	}
	index, answer, err = s.config.Ask(ctx, r)
	if err != nil {
		s.withdraw(lasting, r.Ask.ID)
		return 0, "", err
	}
	if err := s.bucket().Delete(lasting, questionPrefix+r.Ask.ID); err != nil {
		s.config.Log.Warn("could not forget a question", "err", err)
	}
	return index, answer, nil
}

// withdraw takes a question back.
func (s *SignIn) withdraw(ctx context.Context, id string) {
	if err := s.config.Withdraw(ctx, id); err != nil {
		s.config.Log.Warn("could not take back the question of a sign-in", "err", err)
		return
	}
	if err := s.bucket().Delete(ctx, questionPrefix+id); err != nil {
		s.config.Log.Warn("could not forget the question of a sign-in", "err", err)
	}
}

// withdrawOldQuestions takes back the questions that were open when the gateway ended: nobody waits for
// their answers any more, and what a person writes next must not be taken for one.
func (s *SignIn) withdrawOldQuestions() {
	keys, err := s.keys(s.ctx, questionPrefix)
	if err != nil {
		s.config.Log.Warn("could not look for open questions of sign-ins", "err", err)
	}
	for _, key := range keys {
		s.withdraw(s.ctx, strings.TrimPrefix(key, questionPrefix))
	}
}

// tellEnd tells the person how the attempt has ended, if nobody else does.
func (f *flow) tellEnd(scope tools.Scope) {
	<-f.done
	f.mu.Lock()
	awaited, err := f.awaited, f.err
	f.mu.Unlock()
	s := f.signIn
	if awaited || s.ctx.Err() != nil {
		return
	}
	text := s.config.Texts.SignedIn.With(f.key.server)
	if err != nil {
		text = s.config.Texts.NotSignedIn.With(f.key.server)
	}
	r := chat.Reply{ID: "signed-in:" + f.id, To: scope.At, For: scope.Whose(), Text: text}
	if err := s.config.Send(s.ctx, r); err != nil {
		s.config.Log.Warn("could not tell a person how their sign-in ended", "server", f.key.server, "err", err)
	}
}
