package web

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store"
	"parley/timetest"
)

// R-S5: the cookie is for this site and for the server only.
func TestCookie(t *testing.T) {
	for _, https := range []bool{false, true} {
		f := newFace(t, func(c *Config) {
			if https {
				c.PublicURL = public
			}
		})
		r := f.want(t, 204, asking{method: "POST", path: "/signin", body: `{"token":"` + token + `"}`})
		c := r.Cookies()[0]
		if c.Name != "parley" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Secure != https || len(c.Value) < 43 {
			t.Errorf("cookie = %+v", c)
		}
		if strings.Contains(f.dump(t), c.Value) || strings.Contains(read(t, r), c.Value) {
			t.Error("the cookie is kept or told in clear")
		}
	}
}

func TestSignIn(t *testing.T) {
	f := newFace(t)
	for _, body := range []string{`{}`, `{"token":""}`, `{"token":"wrong"}`, `{"code":"wrong"}`, `{"code":"","token":"` + token + `x"}`} {
		r := f.want(t, 401, asking{method: "POST", path: "/signin", body: body})
		if len(r.Cookies()) > 0 {
			t.Errorf("%s gets a cookie", body)
		}
	}
	f.want(t, 400, asking{method: "POST", path: "/signin", body: `{"token":"` + token + `","person":"anna"}`})
	f.want(t, 401, asking{path: "/?token=" + token}) // no credential in an address
	boss := f.owner(t)
	if n := len(f.audited); n != 6 || !strings.HasPrefix(f.audited[n-1], "sign-in owner") {
		t.Errorf("told %q", f.audited)
	}
	f.want(t, 204, asking{method: "POST", path: "/signout", by: boss})
	f.want(t, 401, asking{path: "/", by: boss})

	none := newFace(t, func(c *Config) { c.Token = "" })
	none.want(t, 401, asking{method: "POST", path: "/signin", body: `{"token":""}`})
	none.want(t, 401, asking{path: "/metrics", header: http.Header{"Authorization": {"Bearer "}}})
	if page := read(t, none.want(t, 200, asking{path: "/signin"})); strings.Contains(page, "<form") {
		t.Error("a token is asked for where there is none")
	}
}

// Whoever has the right credential is let in at once, also while somebody at the
// same address guesses wrong as fast as they can.
func TestNobodyIsLockedOut(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	key, _, err := f.access.people.issue(t.Context(), pass{Kind: keys, Person: ownerName, Prefix: "x"})
	if err != nil {
		t.Fatal(err)
	}
	bearer := func(secret string) http.Header { return http.Header{"Authorization": {"Bearer " + secret}} }
	for range 3 * totalBurst {
		for _, wrong := range []asking{
			{method: "POST", path: "/signin", body: `{"token":"wrong"}`}, {method: "POST", path: "/signin", body: `{"code":"wrong"}`},
			{path: "/metrics", header: bearer("wrong")}, {path: "/v1/models", header: bearer(keyPrefix + "wrong")},
		} {
			if got := f.ask(wrong).StatusCode; got != 401 && got != 429 {
				t.Fatalf("%s: %d", wrong.path, got)
			}
		}
		f.want(t, 200, asking{path: "/metrics", header: bearer(token)})
		f.want(t, 200, asking{path: "/v1/models", header: bearer(key)})
		f.want(t, 200, asking{path: "/", by: boss})
	}
	f.want(t, 429, asking{path: "/metrics", header: bearer("wrong")})
	f.owner(t)
	link, err := f.Link(t.Context(), ownerName)
	if err != nil {
		t.Fatal(err)
	}
	f.renewLogin(t, codeOf(t, link))
}

// A token with fewer than 128 bits could be guessed, so it has to wait behind
// wrong ones like any guess; a link still signs the owner in.
func TestShortTokenWaits(t *testing.T) {
	timetest.TestWithOthers(t, func(t *testing.T) {
		const short = "correct-horse-battery-" // lower case only, 22 characters
		f := newFace(t, func(c *Config) { c.Token = short })
		right := asking{method: "POST", path: "/signin", body: `{"token":"` + short + `"}`}
		f.want(t, 204, right)
		for range addressBurst {
			f.want(t, 401, asking{method: "POST", path: "/signin", body: `{"token":"wrong"}`})
		}
		f.want(t, 429, right)
		link, err := f.Link(t.Context(), ownerName)
		if err != nil {
			t.Fatal(err)
		}
		f.renewLogin(t, codeOf(t, link))
		timetest.Sleep(addressInterval)
		f.want(t, 204, right)
	})
}

// Another server on this host, on another port, can set a cookie of the same
// name. Browsers send it along, maybe first; it keeps nobody out.
func TestForeignCookie(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	foreign := []string{cookieName + "=foreign", cookieName + "=" + strings.Repeat("A", 52)}
	for _, cookies := range [][]string{
		{foreign[0], cookieName + "=" + boss}, {cookieName + "=" + boss, foreign[0]}, append(foreign, cookieName+"="+boss),
	} {
		f.want(t, 200, asking{path: "/", header: http.Header{"Cookie": {strings.Join(cookies, "; ")}}})
	}
	f.want(t, 401, asking{path: "/", header: http.Header{"Cookie": {strings.Join(foreign, "; ")}}})
}

// What is refused says what was wrong, in words that help.
func TestWrongCredential(t *testing.T) {
	f := newFace(t)
	for _, c := range []struct {
		asking
		says string
	}{
		{asking{method: "POST", path: "/signin", body: `{"token":"wrong"}`}, "This token is invalid."},
		{asking{method: "POST", path: "/signin", body: `{"code":"wrong"}`}, "This link has already been used, has expired or is invalid."},
		{asking{path: "/v1/models", header: http.Header{"Authorization": {"Bearer sk-of-another-service"}}}, `{"error":{"code":"invalid_api_key","message":"This API key is invalid or has been revoked.","param":null,"type":"invalid_request_error"}}`},
		{asking{path: "/v1/models"}, `"code":"invalid_api_key","message":"An API key is needed`},
		{asking{method: "POST", path: "/v1/chat/completions", body: `{}`, header: http.Header{ownHeader: nil}}, `"message":"An API key is needed`},
		{asking{path: "/v1/models", header: http.Header{"Authorization": {"Bearer " + keyPrefix + "wrong"}}}, `{"error":{"code":"invalid_api_key","message":"This API key is invalid or has been revoked.","param":null,"type":"invalid_request_error"}}`},
	} {
		if got := read(t, f.want(t, 401, c.asking)); !strings.Contains(got, c.says) {
			t.Errorf("%s %s: %s", c.path, c.body, got)
		}
	}
	f.want(t, 413, asking{method: "POST", path: "/signin", body: `{"code":"` + strings.Repeat("x", maxSignIn) + `"}`})
}

// A login holds for 30 days after it was used.
func TestLoginLife(t *testing.T) {
	timetest.TestWithOthers(t, func(t *testing.T) {
		f := newFace(t)
		boss := f.owner(t)
		for range 10 {
			timetest.Sleep(20 * 24 * time.Hour)
			if r := f.want(t, 200, asking{path: "/", by: boss}); len(r.Cookies()) != 1 || r.Cookies()[0].Value != boss {
				t.Error("the browser is not told that it holds for longer")
			}
			if r := f.want(t, 200, asking{path: "/", by: boss}); len(r.Cookies()) != 0 {
				t.Error("renewed twice in a day")
			}
		}
		timetest.Sleep(31 * 24 * time.Hour)
		f.want(t, 401, asking{path: "/", by: boss})
		f.owner(t)
		if n := strings.Count(f.dump(t), " login/"); n != 1 {
			t.Errorf("%d logins are kept, want 1", n)
		}
	})
}

// A link works once, and not for ever.
func TestLinks(t *testing.T) {
	timetest.TestWithOthers(t, func(t *testing.T) {
		f := newFace(t)
		boss := f.owner(t)
		start, err := f.Link(t.Context(), "owner")
		if err != nil {
			t.Fatal(err)
		}
		asked := decoded[struct{ Link string }](t, f.want(t, 201, asking{method: "POST", path: "/api/people", by: boss, body: `{"name":"owner"}`})).Link
		anna := decoded[struct{ Link string }](t, f.want(t, 201, asking{method: "POST", path: "/api/people", by: boss, body: `{"name":"anna"}`})).Link
		page, _, _ := strings.Cut(anna, "#")
		for range 3 { // a preview of the link
			f.want(t, 200, asking{path: strings.TrimPrefix(page, home)})
		}
		timetest.Sleep(23 * time.Hour)
		f.renewLogin(t, codeOf(t, anna))
		f.want(t, 401, asking{method: "POST", path: "/signin", body: codeOf(t, anna)})
		f.renewLogin(t, codeOf(t, start))
		f.want(t, 401, asking{method: "POST", path: "/signin", body: codeOf(t, start)})
		timetest.Sleep(time.Hour)
		f.want(t, 401, asking{method: "POST", path: "/signin", body: codeOf(t, asked)})

		late, err := f.Link(t.Context(), "anna")
		if err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(25 * time.Hour)
		f.want(t, 401, asking{method: "POST", path: "/signin", body: codeOf(t, late)})

		f.owner(t)
		if left := f.dump(t); strings.Contains(left, " link/") {
			t.Errorf("links that ended are kept:\n%s", left)
		}
		if _, err := f.Link(t.Context(), "nobody"); err == nil {
			t.Error("a link for nobody")
		}
	})
}

// Of many who use a link at once, one gets in.
func TestLinkRace(t *testing.T) {
	f := newFace(t)
	link, err := f.Link(t.Context(), "owner")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(link, "#")
	var in atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if name, err := f.access.people.redeem(t.Context(), code); err == nil && name == ownerName {
				in.Add(1)
			}
		})
	}
	all.Wait()
	if in.Load() != 1 {
		t.Errorf("%d got in", in.Load())
	}
}

// Somebody removed is out at once, with all that was theirs, and their name is
// nobody else's.
func TestRemove(t *testing.T) {
	f := newFace(t)
	boss, anna := f.owner(t), f.invited(t, "anna")
	made := decoded[struct{ ID, Secret, Last, Prefix string }](t,
		f.want(t, 201, asking{method: "POST", path: "/api/keys", by: boss, body: `{"person":"anna","prefix":"phone"}`}))
	by := http.Header{"Authorization": {"Bearer " + made.Secret}}
	if got := read(t, f.want(t, 200, asking{path: "/v1/models", header: by})); got != "api for anna in phone" {
		t.Errorf("api got %q", got)
	}
	link, err := f.Link(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	f.want(t, 204, asking{method: "DELETE", path: "/api/people/anna", by: boss})
	f.want(t, 401, asking{path: "/", by: anna})
	f.want(t, 401, asking{path: "/v1/models", header: by})
	f.want(t, 401, asking{method: "POST", path: "/signin", body: codeOf(t, link)})
	if left := f.dump(t); strings.Count(left, "anna") != 2 { // twice in the one entry of who was removed
		t.Errorf("left:\n%s", left)
	}
	if people := read(t, f.want(t, 200, asking{path: "/api/people", by: boss})); strings.Contains(people, "anna") {
		t.Errorf("the people are %s", people)
	}
	f.want(t, 409, asking{method: "POST", path: "/api/people", by: boss, body: `{"name":"anna"}`})
	f.want(t, 404, asking{method: "POST", path: "/api/keys", by: boss, body: `{"person":"anna"}`})
	f.want(t, 404, asking{method: "DELETE", path: "/api/people/nobody", by: boss})
	f.want(t, 404, asking{method: "DELETE", path: "/api/people/owner", by: boss})
	for _, name := range []string{"", "owner", "Anna", "a/b", "a:b", "-a", "änna", "a b", evil, strings.Repeat("a", 33), "a\n"} {
		if err := f.access.people.add(t.Context(), name); err == nil {
			t.Errorf("%q was invited", name)
		}
	}
}

// A hooked bucket calls after once it was read.
type hooked struct {
	store.Bucket
	after func()
}

func (b hooked) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	defer b.after()
	return b.Bucket.Get(ctx, key)
}

// Somebody removed just after they were let in, and before what they are in the
// middle of could be ended, gets nothing all the same.
func TestRemoveMeanwhile(t *testing.T) {
	f := newFace(t)
	anna, removed := f.invited(t, "anna"), false
	people := hooked{f.store.Bucket("web/people"), func() {
		if !removed {
			removed = true
			if err := f.admin.remove(t.Context(), "anna"); err != nil {
				t.Error(err)
			}
		}
	}}
	f.access.people.invited = store.NewTable(people, store.Report[invited])
	f.want(t, 401, asking{path: "/", by: anna})
	if !removed {
		t.Error("nobody was removed")
	}
}

// R-S6: a key is shown once; afterwards only its end is known.
func TestKeys(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	made := decoded[struct{ ID, Secret, Last, Prefix string }](t, f.want(t, 201, asking{method: "POST", path: "/api/keys", by: boss, body: `{}`}))
	if made.Prefix != "owner" || !strings.HasSuffix(made.Secret, made.Last) || len(made.Last) != 4 {
		t.Errorf("made %+v", made)
	}
	for what, text := range map[string]string{
		"list": read(t, f.want(t, 200, asking{path: "/api/people", by: boss})), "page": read(t, f.want(t, 200, asking{path: "/owner/people/access", by: boss})),
		"store": f.dump(t), "audit": strings.Join(f.audited, "\n"),
	} {
		if strings.Contains(text, made.Secret) || !strings.Contains(text, made.Last) {
			t.Errorf("%s tells too much or too little: %s", what, text)
		}
	}
	for _, prefix := range []string{"a/b", "a:b", "A", "-a", strings.Repeat("a", 33)} {
		f.want(t, 400, asking{method: "POST", path: "/api/keys", by: boss, body: `{"prefix":"` + prefix + `"}`})
	}
	by := http.Header{"Authorization": {"Bearer " + made.Secret}}
	f.want(t, 200, asking{method: "POST", path: "/v1/chat/completions", header: by})
	for _, id := range []string{"", "x", made.ID[:8], made.Secret} {
		if r := f.ask(asking{method: "DELETE", path: "/api/keys/" + id, by: boss}); r.StatusCode < 400 && id != "" {
			t.Errorf("revoked by %q", id)
		}
	}
	f.want(t, 204, asking{method: "DELETE", path: "/api/keys/" + made.ID, by: boss})
	f.want(t, 401, asking{path: "/v1/models", header: by})
}

// What is damaged opens nothing, and takes nobody else along (P21).
func TestDamaged(t *testing.T) {
	f := newFace(t)
	boss, anna := f.owner(t), f.invited(t, "anna")
	f.invited(t, "bert")
	for _, name := range []string{"web/people", "web/passes"} {
		if _, err := f.store.Bucket(name).Put(t.Context(), "zz", []byte("{"), store.Any); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.store.Bucket("web/people").Put(t.Context(), "anna", []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	f.want(t, 401, asking{path: "/", by: anna})
	if got := decoded[struct{ People []invited }](t, f.want(t, 200, asking{path: "/api/people", by: boss})).People; len(got) != 1 || got[0].Name != "bert" {
		t.Errorf("people = %v", got)
	}
	f.want(t, 201, asking{method: "POST", path: "/api/people", by: boss, body: `{"name":"bert"}`})
}

// TestNobodyInvited checks that lists without entries are empty lists for
// programs, before anybody was invited and after everybody was removed.
func TestNobodyInvited(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	empty := func() {
		t.Helper()
		const want = `{"people":[],"keys":[]}`
		if got := strings.TrimSpace(read(t, f.want(t, 200, asking{path: "/api/people", by: boss}))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	empty()
	f.want(t, 201, asking{method: "POST", path: "/api/people", by: boss, body: `{"name":"anna"}`})
	f.want(t, 204, asking{method: "DELETE", path: "/api/people/anna", by: boss})
	empty()
}

// Who may sign in is known with the day of the invitation, until they are removed.
func TestInvited(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	f.invited(t, "gast")
	if all, err := f.Invited(t.Context()); err != nil || len(all) != 1 || time.Since(all["gast"]) > time.Hour {
		t.Errorf("invited are %v, %v", all, err)
	}
	f.want(t, 204, asking{method: "DELETE", path: "/api/people/gast", by: boss})
	if all, err := f.Invited(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("after the removal invited are %v, %v", all, err)
	}
}
