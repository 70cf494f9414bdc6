package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/signin"
)

// A SignIn says until when somebody is signed in to a server.
type SignIn struct {
	Until   time.Time `json:"until,omitzero"` // zero: that is not known
	Renewed bool      `json:"renewed"`        // it is renewed before that
}

// addSignIns notes in all, the states of connections, who is signed in, also who has no connection.
func (m *Manager) addSignIns(ctx context.Context, all []Status) ([]Status, error) {
	if m.config.SignIn == nil {
		return all, nil
	}
	accounts, err := m.config.SignIn.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range accounts {
		until := &SignIn{Until: a.Until, Renewed: a.Renewed}
		isServer := func(s Status) bool { return s.Name == a.Server }
		isTheirs := func(s Status) bool { return isServer(s) && s.Person == a.Who }
		i := slices.IndexFunc(all, isTheirs)
		if i < 0 {
			// The server's own row stands for nobody's connection.
			i = slices.IndexFunc(all, func(s Status) bool { return isServer(s) && s.Person == "" })
		}
		switch {
		case i >= 0:
			all[i].Person = a.Who
			all[i].SignIn = until
		case slices.ContainsFunc(all, isServer):
			all = append(all, Status{Name: a.Server, Person: a.Who, Phase: mcp.Idle, SignIn: until})
		}
	}
	slices.SortStableFunc(all, func(a, b Status) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.Person), string(b.Person)))
	})
	return all, nil
}

// service returns a server that one can sign in to.
func (m *Manager) service(name string) (mcp.Service, error) {
	if m.config.Servers.Server(name) == nil {
		return mcp.Service{}, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	s, ok := m.config.Servers.Service(name)
	if !ok || m.config.SignIn == nil {
		return mcp.Service{}, fmt.Errorf("sign in to %s: %w", name, signin.ErrNoSignIn)
	}
	return s, nil
}

// isDisabled reports whether the config has a server of that name, and has switched it off.
func (m *Manager) isDisabled(name string) bool {
	s := m.config.Servers.Server(name)
	return s != nil && !s.Enabled
}

// needsSignIn reports whether owners have to sign in to a server, whose connections are all.
func (m *Manager) needsSignIn(name string, all []Status) bool {
	s, err := m.service(name)
	if err != nil || !s.Entry.Enabled || !m.config.SignIn.Personal(s) {
		return false
	}
	return !slices.ContainsFunc(all, func(s Status) bool { return s.Person == chat.TheOwner && s.SignIn != nil })
}

// Login begins to sign the owner in to a server.
func (m *Manager) Login(ctx context.Context, name string) (signin.Login, error) {
	if m.isDisabled(name) {
		return signin.Login{}, fmt.Errorf("%w: %s", mcp.ErrDisabled, name)
	}
	s, err := m.service(name)
	if err != nil {
		return signin.Login{}, err
	}
	return m.config.SignIn.Login(ctx, s, chat.TheOwner)
}

// FinishLogin ends what Login began, with what the browser shows at the end.
func (m *Manager) FinishLogin(ctx context.Context, id, answer string) error {
	if m.config.SignIn == nil {
		return signin.ErrFailed
	}
	return m.config.SignIn.Finish(ctx, id, answer)
}

// Logout signs who out of a server. It reports whether they were signed in; they are not any more, although
// err may say that the server could not be told.
func (m *Manager) Logout(ctx context.Context, name string, who chat.Person) (was bool, err error) {
	s, err := m.service(name)
	if err != nil {
		return false, err
	}
	return m.config.SignIn.Logout(ctx, s, who)
}

// signInOrOut does what a person asks for in their own chat: it is about their own account.
func (m *Manager) signInOrOut(ctx context.Context, word, name string, message chat.Message) (string, error) {
	say := m.config.Texts
	scope := scopeOf(message)
	switch usable := m.config.Servers.Usable(scope); {
	case message.Group:
		return say.OnlyPrivate, nil
	case name == "":
		return say.Usage, nil
	case message.From.Role == chat.Owner && m.isDisabled(name):
		return say.SwitchedOff.With(name), nil
	case !slices.Contains(usable, name):
		return say.Unknown.With(chat.Inline(name, 100), strings.Join(usable, ", ")), nil
	}
	do := m.signOut
	if word == "login" {
		do = m.signIn
	}
	answer, err := do(ctx, name, scope)
	switch {
	case errors.Is(err, signin.ErrNoSignIn):
		return say.NoSignIn.With(name), nil
	case errors.Is(err, signin.ErrFailed):
		m.config.Log.Warn("could not begin a sign-in to an MCP server", "server", name, "err", err)
		return say.NoLink.With(name), nil
	}
	return answer, err
}

// signIn asks the person of scope to sign in to a server.
func (m *Manager) signIn(ctx context.Context, name string, scope tools.Scope) (string, error) {
	s, err := m.service(name)
	if err != nil {
		return "", err
	}
	return m.config.Texts.LinkComes, m.config.SignIn.LoginIn(ctx, s, scope)
}

// signOut signs the person of scope out of a server.
func (m *Manager) signOut(ctx context.Context, name string, scope tools.Scope) (string, error) {
	say := m.config.Texts
	was, err := m.Logout(ctx, name, scope.Whose())
	switch {
	case was && err != nil:
		return say.NotRevoked.With(name), nil
	case was:
		return say.SignedOut.With(name), nil
	}
	return say.WasNotSignedIn.With(name), err
}

func scopeOf(m chat.Message) tools.Scope {
	return tools.Scope{Session: m.Session(), At: m.At, From: m.From, Group: m.Group}
}

// signedIn says until when somebody is signed in.
func (m *Manager) signedIn(s *SignIn) string {
	say := m.config.Texts
	until := s.Until.In(m.config.Zone).Format("2006-01-02 15:04")
	switch {
	case s.Renewed:
		return say.RenewedSignIn
	case s.Until.IsZero():
		return say.SignIn
	}
	return say.SignInUntil.With(until)
}
