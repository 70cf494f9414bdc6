package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"parley/chat"
)

const (
	// flowTimeout is how long a person has to sign in.
	flowTimeout = 10 * time.Minute

	// maxCodes is how many codes may be tried.
	maxCodes = 3

	// keptFlows is how many sign-ins may be under way for one person.
	keptFlows = 10
)

// A flow is one attempt of a person to sign in to a server.
type flow struct {
	signIn *SignIn
	key    key
	target target
	id     string // in its link
	ctx    context.Context
	cancel context.CancelCauseFunc

	started   chan struct{}                 // closed when address is known
	code      chan auth.AuthorizationResult // from the browser, one
	exchanged chan struct{}                 // closed when there are tokens, which count once they are confirmed
	confirmed chan struct{}                 // closed when the person has sent confirmation
	done      chan struct{}                 // closed at the end, with err

	mu           sync.Mutex
	address      string // where the browser is sent
	state        string // of address; "" when it was used
	browser      string // digest of the cookie of the browser that the link was opened in
	confirmation string // what the last page shows
	tries        int    // how many wrong ones were sent
	asked        bool
	waiting      int  // calls and commands
	awaited      bool // they were waiting at the end
	err          error
}

// Why a sign-in has ended.
var (
	errRefused = errors.New("the person did not sign in")
	errLate    = errors.New("nobody signed in within 10 minutes")
	errCodes   = errors.New("wrong codes were sent")
)

// begin returns the attempt of k that is under way, or a new one.
func (s *SignIn) begin(k key, t target, c challenge) (*flow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := context.Cause(s.ctx); err != nil {
		return nil, err
	}
	mine := 0
	for _, f := range s.flows {
		if f.key == k && f.target.Entry.URL == t.Entry.URL {
			return f, nil
		}
		if f.key.who == k.who {
			mine++
		}
	}
	if mine >= keptFlows {
		return nil, errors.New("too many sign-ins of this person are under way")
	}
	f := &flow{
		signIn:       s,
		key:          k,
		target:       t,
		id:           rand.Text(),
		started:      make(chan struct{}),
		code:         make(chan auth.AuthorizationResult, 1),
		exchanged:    make(chan struct{}),
		confirmed:    make(chan struct{}),
		done:         make(chan struct{}),
		confirmation: newConfirmation(),
	}
	f.ctx, f.cancel = context.WithCancelCause(s.ctx)
	s.flows[f.id] = f
	s.work.Go(func() { f.run(c) })
	return f, nil
}

// flowOf returns an attempt by its id, nil if there is none.
func (s *SignIn) flowOf(id string) *flow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flows[id]
}

// receive gives what a browser brought back to the attempt that it belongs to. allowed reports whether
// the browser is the one that the attempt is made in.
func (s *SignIn) receive(q url.Values, allowed func(*flow) bool) *flow {
	s.mu.Lock()
	var all []*flow
	for _, f := range s.flows {
		all = append(all, f)
	}
	s.mu.Unlock()
	for _, f := range all {
		f.mu.Lock()
		mine := f.state != "" && subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(f.state)) == 1
		f.mu.Unlock()
		if mine && allowed(f) && f.receive(q) {
			return f
		}
	}
	return nil
}

// newConfirmation returns six digits.
func newConfirmation() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // rand.Reader never fails
	}
	return fmt.Sprintf("%06d", n)
}

// run makes the attempt, which the package auth of the SDK knows how to.
func (f *flow) run(c challenge) {
	late := time.AfterFunc(flowTimeout, func() { f.cancel(errLate) })
	defer late.Stop()
	err := f.authorize(c)
	if f.ctx.Err() != nil && err != nil {
		err = context.Cause(f.ctx)
	}
	s := f.signIn
	s.mu.Lock()
	delete(s.flows, f.id)
	s.mu.Unlock()
	f.report(err)
	f.mu.Lock()
	f.err = err
	f.state = ""
	f.awaited = f.waiting > 0
	f.mu.Unlock()
	f.cancel(errors.New("the sign-in is over"))
	close(f.done)
}

// report tells everybody but the person how the attempt has ended.
func (f *flow) report(err error) {
	s := f.signIn
	if err != nil {
		s.config.Log.Info("nobody signed in to an MCP server", "server", f.key.server, "person", f.key.who, "err", err)
		return
	}
	s.audit(f.key, "signed in to "+f.key.describe())
	s.watcher().SignedIn(s.ctx, f.key.server, f.key.who)
}

func (s *SignIn) audit(k key, what string) {
	if s.config.Audit != nil {
		s.config.Audit("mcp", string(k.who), what)
	}
}

func (f *flow) authorize(c challenge) error {
	r, resp, err := c.response()
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	h, err := auth.NewAuthorizationCodeHandler(f.config())
	if err != nil {
		return err
	}
	return withoutSecrets(h.Authorize(f.ctx, r, resp))
}

// withoutSecrets returns err, of a whole attempt, without what an authorization server may have put
// into it.
func withoutSecrets(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("the authorization server refused the code with %d %s", statusOf(refused),
			chat.Clip(chat.OneLine(refused.ErrorCode), 60, "…"))
	}
	return err
}

// config says how to sign in. A client that the owner registered comes first: it is what they want.
func (f *flow) config() *auth.AuthorizationCodeHandlerConfig {
	home := f.signIn.config.Home()
	back := home + callbackPath
	own := f.target.Entry.Auth
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:              back,
		AuthorizationCodeFetcher: f.fetch,
		RequestRefreshToken:      true,
		Client:                   f.target.Client,
		NewTokenSource:           f.keep,
		ScopeFilter:              f.scopes,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{
				RedirectURIs:  []string{back},
				ClientName:    clientName,
				GrantTypes:    grantTypes(),
				ResponseTypes: []string{"code"},
			},
		},
	}
	switch {
	case own != nil && own.ClientID != "":
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: own.ClientID}
		if own.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: own.ClientSecret}
		}
	case f.signIn.hasDocument():
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: home + documentPath}
	}
	return c
}

const clientName = "Parley"

func grantTypes() []string { return []string{"authorization_code", "refresh_token"} }

// scopes returns those to ask for: what the config says, or what the server wants, and what the person
// has granted before.
func (f *flow) scopes(wanted []string) []string {
	if own := f.target.Entry.Auth; own != nil && len(own.Scopes) > 0 {
		return slices.Clone(own.Scopes)
	}
	a := f.signIn.account(f.key)
	a.lock()
	defer a.unlock()
	if a.record == nil {
		return wanted
	}
	all := slices.Clone(wanted)
	for _, scope := range a.record.Scopes {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// fetch implements [auth.AuthorizationCodeFetcher].
func (f *flow) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("the authorization server has no address that a browser can open")
	}
	isOther := func(r rune) bool { return r <= ' ' || r > '~' }
	if u.User != nil || strings.ContainsFunc(u.Host, isOther) { // people are shown the host, to judge it by
		return nil, fmt.Errorf("the address of the authorization server would look like another one: %q", u.Host)
	}
	f.mu.Lock()
	f.address = u.String()
	f.state = u.Query().Get("state")
	f.mu.Unlock()
	close(f.started)
	select {
	case code := <-f.code:
		return &code, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// keep keeps the tokens once the person has confirmed that they are theirs.
func (f *flow) keep(_ context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
	r := newRecord(f.target.Entry.URL, c, token)
	a := f.signIn.account(f.key)
	if secrets := f.signIn.config.Secrets; secrets != nil {
		secrets.Add(r.secrets()...)
	}
	close(f.exchanged)
	select {
	case <-f.confirmed:
	case <-f.ctx.Done():
		if err := f.target.revoke(context.WithoutCancel(f.ctx), challenge{URL: f.target.Entry.URL}, r); err != nil {
			f.signIn.config.Log.Warn("tokens that nobody confirmed were not revoked",
				"server", f.key.server, "err", err)
		}
		return nil, context.Cause(f.ctx)
	}
	if err := a.accept(f.ctx, r); err != nil {
		return nil, err
	}
	return oauth2.StaticTokenSource(token), nil
}

// wait waits until the attempt has ended, and returns nil if the person has signed in.
func (f *flow) wait(ctx context.Context) error {
	f.mu.Lock()
	f.waiting++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.waiting--
		f.mu.Unlock()
	}()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// link returns what the person opens, once it is known.
func (f *flow) link(ctx context.Context) (string, error) {
	select {
	case <-f.started:
		return f.signIn.config.Home() + startPath + f.id, nil
	case <-f.done:
		return "", cmp.Or(f.err, errRefused)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// direct returns where the browser is sent by the link.
func (f *flow) direct() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.address
}

// receive takes what the browser brought back. It reports whether that belongs to this attempt, which
// is so once.
func (f *flow) receive(q url.Values) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := q.Get("state")
	if f.state == "" || subtle.ConstantTimeCompare([]byte(state), []byte(f.state)) == 0 {
		return false
	}
	f.state = ""
	if code := q.Get("code"); code != "" && q.Get("error") == "" {
		f.code <- auth.AuthorizationResult{Code: code, State: state, Iss: q.Get("iss")}
		return true
	}
	why := chat.Clip(chat.OneLine(q.Get("error")), 60, "…")
	f.cancel(fmt.Errorf("%w: the authorization server answered %q", errRefused, why))
	return true
}

// confirm reports whether text is what the last page shows. Too many wrong ones end the attempt.
func (f *flow) confirm(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text)
	select {
	case <-f.exchanged:
		if subtle.ConstantTimeCompare([]byte(digits), []byte(f.confirmation)) == 1 {
			select {
			case <-f.confirmed:
			default:
				close(f.confirmed)
			}
			return true
		}
	default: // nobody can know it yet
	}
	f.tries++
	if f.tries >= maxCodes {
		f.cancel(errCodes)
	}
	return false
}

// bind has browser, by a secret of its own, be the one that the attempt is made in. It reports false if
// that is another one already.
func (f *flow) bind(secret string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(secret)))
	if f.browser == "" && secret != "" {
		f.browser = digest
	}
	return subtle.ConstantTimeCompare([]byte(digest), []byte(f.browser)) == 1
}
