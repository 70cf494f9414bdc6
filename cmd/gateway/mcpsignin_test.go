package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
	"parley/tools/mcp/mcptest"
)

// eager is an obedient model that, once a person has signed in, asks the server who they are, if it is
// offered the tool.
func eager(ctx context.Context, r llmtest.Request) llmtest.Reply {
	rs := results(r)
	if len(rs) > 0 && strings.Contains(rs[len(rs)-1], "You have its tools now") {
		if names, _ := offered(r, ""); strings.Contains(fmt.Sprint(names), "mcp_mail_whoami") {
			return llmtest.Reply{Calls: call("mcp_mail_whoami", "{}")}
		}
	}
	return obedient(ctx, r)
}

// mailServer has the gateway use the MCP server of p, for everybody.
func (w *testGateway) mailServer(p *mcptest.Provider) {
	w.mcpServers(map[string]any{"mail": map[string]any{"url": p.URL + "/mcp", "for": []string{"everyone"}}})
}

var signInLink = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/oauth/start/\S+`)

// signsIn has somebody follow the last question in their chat, and sign in to p as user.
func (w *testGateway) signsIn(who int64, p *mcptest.Provider, user string, questions int) {
	w.t.Helper()
	var links []string
	w.told(who, "a link", func(texts []string) bool {
		links = signInLink.FindAllString(strings.Join(texts, "\n"), -1)
		return len(links) >= questions
	})
	p.Mu.Lock()
	p.User = user
	p.Mu.Unlock()
	w.tg.Say(who, mcptest.NewBrowser(w.t, nil).SignIn(links[len(links)-1]))
}

// Point 6 of the whole gateway: a 401 becomes a question in the person's own chat; the link leads through
// Parley's pages, and the answer goes on, with the tools, in the same turn. Each person has their own
// account; a group has none; a sign-in outlives kill -9. No token is in a log, a file, a backup, what the
// model is sent or what a server returns.
func TestMCPSignIn(t *testing.T) {
	t.Parallel()
	const group = -1006
	p := mcptest.NewProvider(t)
	w := newTestGateway(t, eager)
	w.mailServer(p)
	w.start()
	users := map[int64]string{person: "ann", guest: "bob"}
	for who, user := range users {
		w.tg.Say(who, "call mcp_mail_sign_in {}")
		w.signsIn(who, p, user, 1)
		w.told(who, "whose account it is", func(texts []string) bool { return toldOf(texts, "you are "+user) })
	}
	w.kill()
	w.start()
	for who, user := range users {
		if got := w.does(who, "mcp_mail_whoami {}"); !strings.Contains(got, "you are "+user) {
			t.Errorf("after kill -9: %s", got)
		}
	}
	w.tg.Say(group, "@parleybot call mcp_mail_whoami {}\ncall mcp_mail_sign_in {}", telegramtest.As(person, "Ada"))
	w.told(group, "that a group has no account", func(texts []string) bool {
		return toldOf(texts, "Tool 'mcp_mail_whoami' not found") && toldOf(texts, "ask for it in a private chat")
	})
	p.EndAll(true) // a call in which the sign-in turns out to have ended goes on after the next
	w.tg.Say(guest, "call mcp_mail_whoami {}")
	w.signsIn(guest, p, "carl", 2)
	w.told(guest, "the new account", func(texts []string) bool { return toldOf(texts, "you are carl") })
	if got := w.does(guest, "mcp_mail_leak {}"); !strings.Contains(got, `Bearer [secret]`) {
		t.Errorf("a token comes back: %s", got)
	}
	file := filepath.Join(t.TempDir(), "parley.backup")
	if out, code := w.run("", "backup", file); code != 0 {
		t.Fatal(out)
	}
	archive := unzipped(t, file)
	key, err := os.ReadFile(filepath.Join(w.dir, "mcp-sign-in.key"))
	if err != nil || bytes.Contains(archive, key) {
		t.Errorf("the key is in the backup, or %v", err)
	}
	w.stop()
	model := fmt.Sprint(w.asked())
	for _, secret := range p.Issued {
		w.grep(secret)
		if bytes.Contains(archive, []byte(secret)) {
			t.Errorf("%s is in the backup", secret)
		}
		if strings.Contains(model, secret) {
			t.Errorf("the model was sent %s", secret)
		}
	}
}

// unzipped returns what is in a backup.
func unzipped(t *testing.T, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// People sign in and out by commands: in a chat each for themselves, at the machine the owner. A question that
// was open at kill -9 takes no message for its answer.
func TestMCPLogin(t *testing.T) {
	t.Parallel()
	p := mcptest.NewProvider(t)
	w := newTestGateway(t, eager)
	w.mailServer(p)
	w.start()
	w.tg.Say(guest, "/mcp login mail")
	w.told(guest, "a link", func(texts []string) bool { return toldOf(texts, "/oauth/start/") })
	w.kill()
	w.start()
	w.tg.Say(guest, "hello")
	w.told(guest, "an answer to what is no code", func(texts []string) bool { return toldOf(texts, "heard hello") })
	w.tg.Say(guest, "/mcp login mail")
	w.signsIn(guest, p, "bob", 2)
	w.told(guest, "that it is done", func(texts []string) bool { return toldOf(texts, "You are signed in to mail.") })
	if got := w.does(guest, "mcp_mail_whoami {}"); !strings.Contains(got, "you are bob") {
		t.Error(got)
	}
	w.tg.Say(guest, "/mcp")
	w.told(guest, "who is signed in", func(texts []string) bool { return toldOf(texts, "mail: signed in, renewed automatically") })

	w.logIn(p, "olga")
	if out, code := w.run("", "mcp", "list"); code != 0 || strings.Count(out, "signed in until ") != 2 ||
		!strings.Contains(out, "mail (owner)") || !strings.Contains(out, fmt.Sprintf("mail (telegram:%d)", guest)) {
		t.Errorf("%d: %s", code, out)
	}
	if got := w.does(person, "mcp_mail_whoami {}"); !strings.Contains(got, "you are olga") {
		t.Error(got)
	}
	_, page := w.visit().do("GET", "/admin/mcp/server?name=mail", nil)
	if strings.Count(page, ", renewed automatically") != 2 || strings.Count(page, "Sign out") != 2 ||
		!strings.Contains(page, fmt.Sprintf("Sign telegram:%d out of mail?", guest)) {
		t.Errorf("the page: %s", page)
	}
	if out, code := w.run("", "mcp", "logout", "mail"); code != 0 || !strings.Contains(out, "You are signed out of mail.") {
		t.Errorf("%d: %s", code, out)
	}
	if got := w.does(person, "mcp_mail_whoami {}"); !strings.Contains(got, "not found") {
		t.Errorf("after the owner signed out: %s", got)
	}
	w.tg.Say(guest, "/mcp logout mail")
	w.told(guest, "that it is done", func(texts []string) bool { return toldOf(texts, "You are signed out of mail.") })
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if len(p.Refresh) > 0 || len(p.Revoked) != 2 {
		t.Errorf("%d refresh tokens are valid, %d were revoked", len(p.Refresh), len(p.Revoked))
	}
}

// logIn has the owner sign in to p as user at the machine.
func (w *testGateway) logIn(p *mcptest.Provider, user string) {
	w.t.Helper()
	cmd := w.command("mcp", "login", "mail")
	in, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	p.Mu.Lock()
	p.User = user
	p.Mu.Unlock()
	lines := bufio.NewScanner(out)
	var said strings.Builder
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if link := signInLink.FindString(lines.Text()); link != "" {
			fmt.Fprintf(in, "000\n%s\n", mcptest.NewBrowser(w.t, nil).SignIn(link))
		}
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "You are signed in to mail.") ||
		!strings.Contains(said.String(), "that is not the code") {
		w.t.Fatalf("%v: %s", err, said.String())
	}
}

// Kill -9 between the answer of the authorization server and the write: the old refresh token is used up, and
// the new one is nowhere. That costs the person a new question, and nothing else: the call that was under way
// goes on after the restart.
func TestMCPSignInKilledWhileRenewed(t *testing.T) {
	t.Parallel()
	p := mcptest.NewProvider(t)
	w := newTestGateway(t, eager)
	w.mailServer(p)
	w.start()
	w.tg.Say(guest, "/mcp login mail")
	p.Mu.Lock()
	p.Lifetime = time.Second // each use renews
	p.Mu.Unlock()
	w.signsIn(guest, p, "bob", 1)
	w.told(guest, "that it is done", func(texts []string) bool { return toldOf(texts, "You are signed in to mail.") })
	killed := make(chan struct{})
	kill := sync.OnceFunc(func() {
		w.kill()
		close(killed)
	})
	p.Mu.Lock()
	p.Issue = kill
	p.Mu.Unlock()
	w.tg.Say(guest, "call mcp_mail_whoami {}")
	<-killed
	p.Mu.Lock()
	p.Issue = nil
	p.Lifetime = time.Hour
	p.Mu.Unlock()
	w.start()
	w.told(guest, "that a sign-in is needed", func(texts []string) bool { return toldOf(texts, "the tools say: ") })
	w.tg.Say(guest, "call mcp_mail_sign_in {}")
	w.signsIn(guest, p, "bob", 2)
	w.told(guest, "whose account it is", func(texts []string) bool { return toldOf(texts, "you are bob") })
}
