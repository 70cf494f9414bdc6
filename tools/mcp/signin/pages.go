package signin

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/response"
)

// Where browsers find what follows.
const (
	Path         = "/oauth/" // of everything
	callbackPath = Path + "callback"
	documentPath = Path + "client.json"
	startPath    = Path + "start/"
	goPath       = Path + "go/"
)

// exchangeWait is how long the last page waits for the authorization server.
const exchangeWait = 20 * time.Second

// Pages serves the pages of a sign-in to everybody: their addresses are the secrets.
func (s *SignIn) Pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+documentPath, s.serveDocument)
	mux.HandleFunc("GET "+startPath+"{id}", s.serveStart)
	mux.HandleFunc("GET "+goPath+"{id}", s.serveGo)
	mux.HandleFunc("GET "+callbackPath, s.serveCallback)
	return mux
}

// hasDocument reports whether authorization servers can fetch the client-id metadata document.
func (s *SignIn) hasDocument() bool { return strings.HasPrefix(s.config.Home(), "https://") }

// serveDocument serves the client-id metadata document: it says to authorization servers who Parley is.
func (s *SignIn) serveDocument(w http.ResponseWriter, _ *http.Request) {
	home := s.config.Home()
	response.JSON(w, http.StatusOK, map[string]any{
		"client_id":                  home + documentPath,
		"client_name":                clientName,
		"client_uri":                 home,
		"redirect_uris":              []string{home + callbackPath},
		"grant_types":                grantTypes(),
		"response_types":             []string{"code"},
		"token_endpoint_auth_method": "none",
	})
}

var invalidLink = response.Problem{Status: http.StatusBadRequest, Text: "this link is invalid or has expired"}

// serveStart says whom the link is for, before anything happens. Programs that open links to show what
// they lead to get no further.
func (s *SignIn) serveStart(w http.ResponseWriter, r *http.Request) {
	f := s.flowOf(r.PathValue("id"))
	if f == nil {
		invalidLink.Write(w, r)
		return
	}
	to, err := url.Parse(f.direct())
	if err != nil {
		invalidLink.Write(w, r)
		return
	}
	title := "Sign in to " + f.key.server
	page(w, title,
		h.P(g.Text("Parley will use your account of "+f.key.server+" for "+string(f.key.who)+".")),
		h.P(g.Text("Go on only if you have just asked Parley for this link yourself. If somebody else sent it to you, "+
			"close this page: they want to use your account.")),
		h.P(h.A(h.Href(goPath+f.id), g.Text("Go on to "+to.Host))),
	)
}

// serveGo sends the browser to the authorization server, and remembers which browser that was.
func (s *SignIn) serveGo(w http.ResponseWriter, r *http.Request) {
	f := s.flowOf(r.PathValue("id"))
	if f == nil {
		invalidLink.Write(w, r)
		return
	}
	secret := f.cookieOf(r)
	if secret == "" {
		secret = rand.Text()
	}
	if !f.bind(secret) {
		response.Problem{Status: http.StatusForbidden, Text: "this link was opened in another browser"}.Write(w, r)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name:     f.cookieName(),
		Value:    secret,
		Path:     Path,
		MaxAge:   int(flowTimeout.Seconds()),
		HttpOnly: true,
		Secure:   s.hasDocument(),
		SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, f.direct(), http.StatusSeeOther)
}

// cookieName returns the name of the cookie of the browser that the attempt is made in.
func (f *flow) cookieName() string { return "parley_signin_" + f.id[:8] }

func (f *flow) cookieOf(r *http.Request) string {
	c, err := r.Cookie(f.cookieName())
	if err != nil {
		return ""
	}
	return c.Value
}

// serveCallback takes the authorization code, in the browser in which the link was opened, once.
func (s *SignIn) serveCallback(w http.ResponseWriter, r *http.Request) {
	f := s.receive(r.URL.Query(), func(f *flow) bool { return f.bind(f.cookieOf(r)) })
	if f == nil {
		invalidLink.Write(w, r)
		return
	}
	select {
	case <-f.exchanged:
		page(w, "Nearly done",
			h.P(g.Text("Send this code to Parley, where you got the link:")),
			h.P(h.Strong(g.Text(f.confirmation[:3]+" "+f.confirmation[3:]))),
			h.P(g.Text("Give it to nobody else: it lets "+string(f.key.who)+" use your account of "+f.key.server+".")),
		)
	case <-f.done:
		response.Problem{Status: http.StatusBadGateway, Text: "you are not signed in; ask Parley again"}.Write(w, r)
	case <-time.After(exchangeWait):
		response.Problem{Status: http.StatusGatewayTimeout, Text: "the other side does not answer"}.Write(w, r)
	case <-r.Context().Done():
	}
}

// page answers with a page.
func page(w http.ResponseWriter, title string, body ...g.Node) {
	content := h.Main(h.ID("main"), h.Class("small"), h.H1(g.Text(title)), g.Group(body))
	_ = response.Page(w, http.StatusOK, response.Document(title, nil, content)) // rendering in memory does not fail
}
