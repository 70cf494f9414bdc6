package mcptest

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A grant is what an authorization code or a refresh token stands for.
type grant struct {
	user      string
	client    string
	challenge string
	redirect  string
	resource  string
	family    string // of refresh tokens: using an old one ends all
}

// A Provider is an authorization server that is strict, and an MCP server at /mcp that it protects. The MCP
// server has a tool "whoami", which says whose token it was called with, and one "leak", which returns that
// token. Fields are read and changed with Mu held while a test has requests under way.
type Provider struct {
	*httptest.Server
	t testing.TB

	Mu             sync.Mutex
	User           string                        // who is signed in to it in the browser
	Clients        map[string]string             // id -> redirect address
	Refresh        map[string]grant              // by refresh token
	Lifetime       time.Duration                 // of access tokens
	Deny           bool                          // the person refuses
	Hold           func()                        // called before tokens are answered; may be nil
	Issue          func()                        // called after tokens were made, before they are answered; may be nil
	Change         func(metadata map[string]any) // called before metadata are answered; may be nil
	Renewals       int
	Revoked        []string // tokens
	Issued         []string // all secrets that were ever issued
	Seen           []string // values of Authorization that the MCP server got
	NoRegistration bool
	Issuer         string       // of the authorization server, if that is at another address
	Authorize      string       // the address that it says people sign in at; "": that at which they do
	Documents      bool         // it fetches client-id metadata documents
	Fetch          *http.Client // with this

	codes  map[string]grant
	spent  map[string]grant // refresh tokens that were used
	access map[string]access
}

type access struct {
	user    string
	expires time.Time
}

// NewProvider returns a Provider that serves until the test ends.
func NewProvider(t testing.TB) *Provider {
	p := &Provider{
		t:        t,
		User:     "ann",
		Clients:  map[string]string{},
		codes:    map[string]grant{},
		Refresh:  map[string]grant{},
		spent:    map[string]grant{},
		access:   map[string]access{},
		Lifetime: time.Hour,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+resourceMetadata, func(w http.ResponseWriter, _ *http.Request) {
		p.writeMetadata(w, map[string]any{
			"resource":              p.URL + "/mcp",
			"authorization_servers": []string{p.issuer()},
			"scopes_supported":      []string{"read"},
		})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", p.metadata)
	mux.HandleFunc("POST /register", p.register)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /revoke", p.revoke)
	server := mcp.NewServer(&mcp.Implementation{Name: "mail", Version: "1"}, nil)
	type none struct{}
	tool := &mcp.Tool{Name: "whoami", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	mcp.AddTool(server, tool, func(_ context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		token := strings.TrimPrefix(r.Extra.Header.Get("Authorization"), "Bearer ")
		p.Mu.Lock()
		defer p.Mu.Unlock()
		text := "you are " + p.access[token].user
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	leak := &mcp.Tool{Name: "leak", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
	mcp.AddTool(server, leak, func(_ context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		token := strings.TrimPrefix(r.Extra.Header.Get("Authorization"), "Bearer ")
		basic := base64.StdEncoding.EncodeToString([]byte("user:" + token))
		return nil, nil, fmt.Errorf("not accepted: %q, Basic %s", "Bearer "+token, basic)
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if !p.accepts(r.Header.Get("Authorization")) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+p.URL+resourceMetadata+`"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

const resourceMetadata = "/.well-known/oauth-protected-resource/mcp"

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (p *Provider) writeMetadata(w http.ResponseWriter, metadata map[string]any) {
	if p.Change != nil {
		p.Change(metadata)
	}
	writeJSON(w, 200, metadata)
}

func (p *Provider) accepts(header string) bool {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Seen = append(p.Seen, header)
	token, bearer := strings.CutPrefix(header, "Bearer ")
	a, known := p.access[token]
	return bearer && known && time.Now().Before(a.expires)
}

// issuer returns the address of the authorization server.
func (p *Provider) issuer() string { return cmp.Or(p.Issuer, p.URL) }

func (p *Provider) metadata(w http.ResponseWriter, _ *http.Request) {
	meta := map[string]any{
		"issuer":                                         p.issuer(),
		"authorization_endpoint":                         cmp.Or(p.Authorize, p.issuer()+"/authorize"),
		"token_endpoint":                                 p.issuer() + "/token",
		"revocation_endpoint":                            p.issuer() + "/revoke",
		"response_types_supported":                       []string{"code"},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"client_id_metadata_document_supported":          p.Documents,
		"authorization_response_iss_parameter_supported": true,
	}
	if !p.NoRegistration {
		meta["registration_endpoint"] = p.issuer() + "/register"
	}
	p.writeMetadata(w, meta)
}

func (p *Provider) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		RedirectURIs []string `json:"redirect_uris"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.RedirectURIs) != 1 {
		writeJSON(w, 400, map[string]string{"error": "invalid_redirect_uri"})
		return
	}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	id := "client-" + rand.Text()
	p.Clients[id] = in.RedirectURIs[0]
	writeJSON(w, 201, map[string]any{
		"client_id": id, "redirect_uris": in.RedirectURIs, "token_endpoint_auth_method": "none",
	})
}

// redirectOf returns where the client of that id may be sent back to.
func (p *Provider) redirectOf(id string) string {
	if !p.Documents || !strings.HasPrefix(id, "https://") {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		return p.Clients[id]
	}
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, id, nil)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	resp, err := p.Fetch.Do(r)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	var doc struct {
		ClientID     string   `json:"client_id"`
		RedirectURIs []string `json:"redirect_uris"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil || doc.ClientID != id || len(doc.RedirectURIs) != 1 {
		p.t.Errorf("document of %s: %+v, %v", id, doc, err)
		return ""
	}
	return doc.RedirectURIs[0]
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	g := grant{
		user:      p.User,
		client:    q.Get("client_id"),
		challenge: q.Get("code_challenge"),
		redirect:  q.Get("redirect_uri"),
		resource:  q.Get("resource"),
		family:    rand.Text(),
	}
	switch {
	case g.redirect == "" || g.redirect != p.redirectOf(g.client):
		http.Error(w, "wrong redirect_uri", 400)
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || len(g.challenge) != 43:
		http.Error(w, "no PKCE", 400)
	case g.resource != p.URL+"/mcp" || q.Get("state") == "":
		http.Error(w, "no resource or state", 400)
	case p.Deny:
		back := url.Values{"error": {"access_denied"}, "state": {q.Get("state")}, "iss": {p.issuer()}}
		http.Redirect(w, r, g.redirect+"?"+back.Encode(), http.StatusFound)
	default:
		code := "code-" + rand.Text()
		p.Mu.Lock()
		p.codes[code] = g
		p.Issued = append(p.Issued, code)
		p.Mu.Unlock()
		back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.issuer()}}
		http.Redirect(w, r, g.redirect+"?"+back.Encode(), http.StatusFound)
	}
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if p.Hold != nil {
		p.Hold()
	}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	refuse := func(why string) { writeJSON(w, 400, map[string]string{"error": why}) }
	var g grant
	switch r.FormValue("grant_type") {
	case "authorization_code":
		code := r.FormValue("code")
		g = p.codes[code]
		delete(p.codes, code) // one use
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if g.client == "" || g.client != r.FormValue("client_id") || g.redirect != r.FormValue("redirect_uri") ||
			g.resource != r.FormValue("resource") || base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge {
			refuse("invalid_grant")
			return
		}
	case "refresh_token":
		token := r.FormValue("refresh_token")
		if old, twice := p.spent[token]; twice { // theft: nothing of this sign-in is valid any more
			for t, g := range p.Refresh {
				if g.family == old.family {
					delete(p.Refresh, t)
				}
			}
		}
		g = p.Refresh[token]
		if g.client == "" || g.client != r.FormValue("client_id") {
			refuse("invalid_grant")
			return
		}
		p.Renewals++
		delete(p.Refresh, token)
		p.spent[token] = g
	default:
		refuse("unsupported_grant_type")
		return
	}
	a, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	p.access[a] = access{g.user, time.Now().Add(p.Lifetime)}
	p.Refresh[refresh] = g
	p.Issued = append(p.Issued, a, refresh)
	if p.Issue != nil {
		p.Issue()
	}
	writeJSON(w, 200, map[string]any{
		"access_token": a, "token_type": "Bearer", "refresh_token": refresh, "expires_in": int(p.Lifetime.Seconds()),
	})
}

func (p *Provider) revoke(w http.ResponseWriter, r *http.Request) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Revoked = append(p.Revoked, r.FormValue("token"))
	delete(p.Refresh, r.FormValue("token"))
}

// EndAll has no token be valid any more.
func (p *Provider) EndAll(refreshToo bool) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	clear(p.access)
	if refreshToo {
		clear(p.Refresh)
	}
}
