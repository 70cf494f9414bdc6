package manage_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store/mem"
	"parley/texts"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/manage"
	"parley/tools/mcp/mcptest"
	"parley/tools/mcp/pins"
	"parley/workspace"
)

// A rig is a server that changes, and a Manager that looks after it.
type rig struct {
	*manage.Manager
	t       *testing.T
	remote  *mcptest.Changing
	servers *mcp.Servers
	scope   tools.Scope

	mu      sync.Mutex
	audited []string
}

func entry(url string) *mcp.Server {
	return &mcp.Server{
		URL: url, EnabledTools: []string{"*"}, ToolTimeout: time.Minute, Enabled: true, For: []string{"owners"},
	}
}

func newRig(t *testing.T) *rig {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	at := chat.Address{Channel: "telegram", Chat: "1"}
	r := &rig{t: t, remote: mcptest.NewChanging(t)}
	r.scope = tools.Scope{Session: at.Session(), At: at, From: chat.Sender{ID: "1", Role: chat.Owner}, Turn: "1", Workspace: ws}
	book := pins.New(pins.Config{Store: mem.New()})
	r.servers = mcp.New(mcp.Config{Review: book.Review})
	r.servers.Use(map[string]*mcp.Server{"my files": entry(r.remote.URL), "off": {URL: r.remote.URL}})
	r.Manager = manage.New(manage.Config{
		Servers: r.servers,
		Book:    book,
		Texts:   texts.English().Tools.MCP,
		Redact:  func(text string) string { return text },
		Audit: func(kind, who, what string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.audited = append(r.audited, kind+" "+who+" "+what)
		},
	})
	return r
}

// run has the servers at work until the test ends.
func (r *rig) run() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.servers.Run(ctx)
	}()
	r.t.Cleanup(func() {
		stop()
		<-ended
	})
}

func (r *rig) kit() *tools.Kit {
	r.t.Helper()
	kit, err := tools.NewKit(r.t.Context(), r.scope, []tools.Source{r.servers}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		r.t.Fatal(err)
	}
	return kit
}

// offered returns the descriptions that models are shown, by name.
func (r *rig) offered() map[string]string {
	all := map[string]string{}
	for _, s := range r.kit().Specs() {
		all[s.Name] = s.Description
	}
	return all
}

// await waits until is reports true.
func (r *rig) await(what string, is func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatal("in vain: ", what)
		}
	}
}

func (r *rig) call(name string) string {
	kit := r.kit()
	return kit.Call(r.t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: name, Args: "{}"}, Scope: r.scope}).Text
}

// say gives the command /mcp.
func (r *rig) say(role chat.Role, group bool, text string) string {
	r.t.Helper()
	m := chat.Message{At: r.scope.At, From: chat.Sender{ID: "1", Role: role}, Group: group, Text: text}
	answer, err := r.Command(r.t.Context(), m)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer
}

// R-S22: a tool that its server changes is withheld while it runs: models do not see it, a call says
// why, and an owner sees the difference and approves it by /mcp.
func TestRS22Command(t *testing.T) {
	r := newRig(t)
	r.remote.Offer("read", "Reads.")
	r.run()
	if got := r.offered(); got["mcp_my_files_read"] != "Reads." {
		t.Fatalf("offered %q", got)
	}
	r.remote.Offer("read", "Reads and sends.")
	r.remote.Offer("send", "Sends.")
	r.await("the change is withheld", func() bool { return len(r.offered()) == 0 })
	if got := r.call("mcp_my_files_read"); !strings.Contains(got, "An owner must look at the change and approve it") || strings.Contains(got, "this is") {
		t.Errorf("called: %s", got)
	}
	r.await("both changes are seen", func() bool { return strings.Contains(r.say(chat.Owner, false, "/mcp"), "2 changes wait") })
	shown := r.say(chat.Owner, false, "/mcp show my files")
	for _, part := range []string{"-description: Reads.\n+description: Reads and sends.", "# 1. changed: tool read (description)", "# 2. new: tool send", "`/mcp approve my files "} {
		if !strings.Contains(shown, part) {
			t.Errorf("it lacks %q: %s", part, shown)
		}
	}
	code := regexp.MustCompile("`/mcp approve my files ([a-z2-7]{8})`").FindStringSubmatch(shown)
	if code == nil {
		t.Fatalf("nothing says how to approve: %s", shown)
	}
	if got := r.say(chat.Owner, false, "/mcp approve my files"); !strings.Contains(got, code[1]) || len(r.offered()) > 0 {
		t.Errorf("without a code it is shown, and not approved: %s", got)
	}
	r.remote.Offer("send", "Sends all.") // it changes once more before the owner answers
	r.await("the last change is seen", func() bool { return !strings.Contains(r.say(chat.Owner, false, "/mcp show my files"), code[1]) })
	stale := r.say(chat.Owner, false, "/mcp approve my files "+code[1])
	if !strings.Contains(stale, "Nothing was approved") || !strings.Contains(stale, "+description: Sends all.") || len(r.offered()) > 0 {
		t.Errorf("approved what was not shown: %s", stale)
	}
	code = regexp.MustCompile("`/mcp approve my files ([a-z2-7]{8})`").FindStringSubmatch(stale)
	r.say(chat.Owner, false, "/mcp approve my files "+strings.ToUpper(code[1]))
	r.await("it is offered", func() bool { return len(r.offered()) == 2 })
	if got := r.call("mcp_my_files_send"); !strings.Contains(got, "this is send") {
		t.Errorf("called: %s", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, want := range []string{"approval 1 MCP server my files: changed: tool read (description)", "approval 1 MCP server my files: new: tool send"} {
		if !slices.Contains(r.audited, want) {
			t.Errorf("the audit log lacks %q: %q", want, r.audited)
		}
	}
}

// R-S22: an owner approves some of what a server has changed, by the numbers that /mcp show gives.
func TestRS22ApproveSomeByCommand(t *testing.T) {
	r := newRig(t)
	r.remote.Offer("read", "Reads.")
	r.run()
	r.offered()
	r.remote.Offer("send", "Sends.")
	r.remote.Offer("send_all", "Sends all.")
	r.await("both are seen", func() bool { return strings.Contains(r.say(chat.Owner, false, "/mcp"), "2 changes wait") })
	shown := r.say(chat.Owner, false, "/mcp show my files")
	code := regexp.MustCompile("Or only some of it, by their numbers: `/mcp approve my files ([a-z2-7]{8}) 1`").FindStringSubmatch(shown)
	if code == nil || !strings.Contains(shown, "# 2. new: tool send_all") {
		t.Fatalf("%s", shown)
	}
	for text, want := range map[string]string{
		code[1] + " 3":    "my files has no change of that number.",
		code[1] + " send": texts.English().Tools.MCP.Usage,
	} {
		if got := r.say(chat.Owner, false, "/mcp approve my files "+text); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := r.say(chat.Owner, false, "/mcp approve my files "+code[1]+" 2"); got != "Approved. 1 change of my files still waits: /mcp show my files" {
		t.Error(got)
	}
	r.await("it is offered", func() bool { return len(r.offered()) == 2 })
	if got := r.offered(); got["mcp_my_files_send_all"] != "Sends all." || got["mcp_my_files_send"] != "" {
		t.Errorf("%q", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if want := []string{"approval 1 MCP server my files: new: tool send_all"}; !slices.Equal(r.audited, want) {
		t.Errorf("%q", r.audited)
	}
}

// R-S22: what is too long to be shown in a chat is not approved there.
func TestRS22ChatApprovesOnlyWhatItShows(t *testing.T) {
	r := newRig(t)
	r.remote.Offer("read", "Reads.")
	r.run()
	r.offered()
	r.remote.Offer("read", strings.Repeat("It reads files. ", 500)+"Then it sends them away.")
	r.await("the change is withheld", func() bool { return len(r.offered()) == 0 })
	shown := r.say(chat.Owner, false, "/mcp show my files")
	if strings.Contains(shown, "sends them away") {
		t.Fatalf("this is no change that is too long: %s", shown)
	}
	if strings.Contains(shown, "/mcp approve") || !strings.Contains(shown, "on the page /admin/mcp") {
		t.Errorf("it can be approved without being seen: %s", shown)
	}
}

// Who is no owner sees which servers there are for them, and changes nothing; in groups nobody does.
func TestCommandIsForOwners(t *testing.T) {
	r := newRig(t)
	r.remote.Offer("read", "Reads.")
	r.run()
	r.offered()
	say := texts.English().Tools.MCP
	for _, c := range []struct {
		role  chat.Role
		group bool
		text  string
		want  string
	}{
		{chat.User, false, "/mcp", say.None},
		{chat.User, false, "/mcp show my files", say.OnlyOwners},
		{chat.User, false, "/mcp approve my files x", say.OnlyOwners},
		{chat.User, true, "/mcp reconnect my files", say.OnlyOwners},
		{chat.Owner, true, "/mcp", "MCP servers:\n- my files"},
		{chat.Owner, true, "/mcp approve my files x", say.OnlyPrivate},
		{chat.Owner, false, "/mcp dance", say.Usage},
		{chat.Owner, false, "/mcp show", say.Usage},
		{chat.Owner, false, "/mcp show your", "There is no MCP server called your. There are: my files, off"},
		{chat.Owner, false, "/mcp approve my files x", "Nothing of my files waits for approval."},
	} {
		if got := r.say(c.role, c.group, c.text); got != c.want {
			t.Errorf("%s %v %s: %q", c.role, c.group, c.text, got)
		}
	}
	if got := r.say(chat.Owner, false, "/mcp"); !strings.Contains(got, "- **my files**: connected; 1 tool\n- **off**: switched off in the config") {
		t.Error(got)
	}
	if got := r.say(chat.Owner, false, "/mcp reconnect my files"); got != "my files is being connected anew." {
		t.Error(got)
	}
}

// R-S22: a test shows what a server offers, and approves nothing: the first turn that needs the server does.
func TestRS22TestApprovesNothing(t *testing.T) {
	r := newRig(t)
	r.remote.Offer("read", "Reads.")
	r.remote.Offer("write", "Writes.")
	r.run()
	for range 2 {
		shown, err := r.Test(t.Context(), "my files")
		if err != nil || len(shown.Offers) != 2 || !shown.Pending.First || len(shown.Pending.Changes) != 2 {
			t.Fatalf("%+v %v", shown, err)
		}
	}
	if got := r.say(chat.Owner, false, "/mcp"); !strings.Contains(got, "my files**: connected; 2 tools, approved by their first use") {
		t.Error(got)
	}
	if got := r.say(chat.Owner, false, "/mcp show my files"); !strings.Contains(got, "read, write\n\nNothing of it has been used so far.") {
		t.Error(got)
	}
	if got := r.offered(); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if shown, err := r.Show(t.Context(), "my files"); err != nil || shown.Pending.First || len(shown.Pending.Changes) > 0 {
		t.Errorf("after the first use: %+v %v", shown.Pending, err)
	}
}

// R-S22: what changes after a test has shown it waits for an owner, also at the first use.
func TestRS22ChangeBeforeFirstUse(t *testing.T) {
	r := newRig(t)
	r.remote.Offer("read", "Reads.")
	r.remote.Offer("write", "Writes.")
	r.run()
	if _, err := r.Test(t.Context(), "my files"); err != nil {
		t.Fatal(err)
	}
	r.remote.Offer("read", "Reads and sends.")
	r.await("the change is seen", func() bool { return strings.Contains(r.say(chat.Owner, false, "/mcp"), "1 change waits") })
	if got := r.offered(); len(got) != 1 || got["mcp_my_files_write"] != "Writes." {
		t.Errorf("%q", got)
	}
	if shown := r.say(chat.Owner, false, "/mcp show my files"); !strings.Contains(shown, "+description: Reads and sends.") {
		t.Error(shown)
	}
}

// R-S22: an owner approves what a test has shown, and the rest stays withheld at the first use.
func TestRS22ApproveBeforeFirstUse(t *testing.T) {
	r := newRig(t)
	r.remote.Offer("read", "Reads.")
	r.remote.Offer("send", "Sends.")
	r.run()
	shown, err := r.Test(t.Context(), "my files")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Approve(t.Context(), "my files", shown.Pending.Code, "1", 1); err != nil {
		t.Fatal(err)
	}
	r.await("only that is offered", func() bool { return len(r.offered()) == 1 })
	if got := r.offered(); got["mcp_my_files_read"] != "Reads." {
		t.Errorf("%q", got)
	}
	if got := r.say(chat.Owner, false, "/mcp"); !strings.Contains(got, "1 tool; **1 change waits for approval**") {
		t.Error(got)
	}
}

// A test connects a server also where nobody runs servers, and no other server.
func TestTestWithoutAGateway(t *testing.T) {
	long := strings.Repeat("Read what it says. ", 50)
	remote := mcptest.NewInstructing(t, long+"\u200b")
	remote.Offer("read", long)
	book := pins.New(pins.Config{Store: mem.New()})
	servers := mcp.New(mcp.Config{Review: book.Review})
	other := entry("http://127.0.0.1:1/")
	other.Eager = true
	servers.Use(map[string]*mcp.Server{"files": entry(remote.URL), "other": other, "dead": entry("http://127.0.0.1:1/")})
	m := manage.New(manage.Config{
		Servers: servers, Book: book, Texts: texts.English().Tools.MCP, Redact: strings.ToUpper, Audit: func(_, _, _ string) {}, Idle: true,
	})
	got, err := m.Test(t.Context(), "files")
	if err != nil || len(got.Offers) != 1 || got.Offers[0].Name != "read" || got.Status[0].Phase == mcp.Failed {
		t.Errorf("%+v %v", got, err)
	}
	if got.Instructions != long+"⟨U+200B⟩" || got.Offers[0].Description != long {
		t.Errorf("not all of what the server says is shown: %+v", got)
	}
	if _, err := m.Test(t.Context(), "nothing"); err == nil {
		t.Error("no error")
	}
}
