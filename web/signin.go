package web

import (
	"errors"
	"net/http"
	"time"

	"parley/store"
)

func (s *Server) signInPage(w http.ResponseWriter, _ *http.Request, _ visitor) error {
	return show(w, http.StatusOK, "signin", frame{Title: "Sign in", Data: s.Token != ""})
}

// signIn takes the administrator's token or a one-time code for a cookie.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, _ visitor) error {
	var by struct{ Token, Code string }
	if err := body(r, &by); err != nil {
		return err
	}
	name, what := ownerName, "the administrator's token"
	right := func() (bool, error) { return s.isToken(by.Token), nil }
	if by.Code != "" {
		what = "a one-time code"
		right = func() (ok bool, err error) {
			name, err = s.people.use(r.Context(), by.Code)
			if missing(err) || errors.Is(err, store.ErrConflict) {
				return false, nil
			}
			return err == nil, err
		}
	}
	if err := s.judge(s.guesses, r, what, right); err != nil {
		return err
	}
	cookie, err := s.people.signIn(r.Context(), name, r.UserAgent())
	if err != nil {
		return err
	}
	s.setCookie(w, cookie, loginLife)
	s.audit("sign-in", name, "by "+what+" from "+r.RemoteAddr)
	writeJSON(w, http.StatusOK, me{name, string(sender(name).Role)})
	return nil
}

// me is what a page may know of who looks at it.
type me struct {
	Person string `json:"person"`
	Role   string `json:"role"`
}

func (s *Server) signOut(w http.ResponseWriter, r *http.Request, v visitor) error {
	if err := s.people.logins.Delete(r.Context(), v.pass); err != nil {
		return err
	}
	s.open.end(func(o visitor) bool { return o.pass == v.pass && v.pass != "" })
	s.setCookie(w, "", -time.Second)
	s.audit("sign-in", v.ID, "signed out")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// setCookie keeps value from scripts, from other sites and, where people come by
// https, from the clear (R-S5).
func (s *Server) setCookie(w http.ResponseWriter, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.names.secure,
	})
}
