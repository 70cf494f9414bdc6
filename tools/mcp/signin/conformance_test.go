package signin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store/mem"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/mcptest"
	"parley/tools/mcp/signin"
	"parley/tools/network"
)

// conformanceClient is the first argument with which this program is the client that the conformance suite
// tests.
const conformanceClient = "conformance-client"

// conformanceHome is where the suite wants the client-id metadata document.
const conformanceHome = "https://conformance-test.local"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == conformanceClient {
		if err := beConformanceClient(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// conformanceScenarios are all those of the official suite that are about signing in, and why one is not
// passed: "" is for those that are.
var conformanceScenarios = map[string]string{
	"auth/metadata-default":             "",
	"auth/metadata-var1":                "",
	"auth/metadata-var2":                "",
	"auth/metadata-var3":                "",
	"auth/basic-cimd":                   "",
	"auth/scope-from-www-authenticate":  "",
	"auth/scope-from-scopes-supported":  "",
	"auth/scope-omitted-when-undefined": "",
	"auth/scope-step-up":                "",
	"auth/scope-retry-limit":            "",
	"auth/token-endpoint-auth-basic":    "",
	"auth/token-endpoint-auth-post":     "",
	"auth/token-endpoint-auth-none":     "",
	"auth/pre-registration":             "",
	"auth/2025-03-26-oauth-metadata-backcompat": "its metadata names another issuer than the server it is of, which RFC 8414 " +
		"(section 3.3) wants refused",
	"auth/2025-03-26-oauth-endpoint-fallback": "",
	"auth/resource-mismatch":                  "",
	"auth/offline-access-scope":               "",
	"auth/offline-access-not-supported":       "",
	"auth/client-credentials-jwt":             "an extension in which no person signs in",
	"auth/client-credentials-basic":           "an extension in which no person signs in",
	"auth/cross-app-access-complete-flow":     "an extension for the identity provider of a company",
}

// documentScenario is about the client-id metadata document. The suite wants it at a path of its own.
const documentScenario = "auth/basic-cimd"

// mayRefuse are the scenarios in which a client does right to end with an error.
var mayRefuse = map[string]bool{"auth/scope-retry-limit": true, "auth/resource-mismatch": true}

// TestConformance: the official suite finds nothing wrong with how people are signed in.
func TestConformance(t *testing.T) {
	suite := mcptest.Package(t, "conformance/dist/index.js")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range mcptest.ClientScenarios(t, suite) {
		if _, known := conformanceScenarios[name]; !known && strings.HasPrefix(name, "auth/") {
			t.Errorf("the suite has a scenario %s, which is not run", name)
		}
	}
	for scenario, why := range conformanceScenarios {
		if why != "" {
			t.Logf("not run: %s: %s", scenario, why)
			continue
		}
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			run := exec.CommandContext(t.Context(), mcptest.Node(), suite, "client",
				"--command", self+" "+conformanceClient, "--scenario", scenario, "--timeout", "120000", "--output-dir", folder)
			out, err := run.CombinedOutput()
			wrong := err != nil && scenario != documentScenario // whose warning is looked at below
			if wrong || strings.Contains(string(out), "CLIENT EXITED WITH ERROR") && !mayRefuse[scenario] {
				t.Errorf("%v\n%s", err, out)
			}
			checkResults(t, folder, out)
		})
	}
}

// checkResults fails the test if the suite has found something wrong, or has warnings.
func checkResults(t *testing.T, folder string, out []byte) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*/checks.json")
	if nested, _ := filepath.Glob(folder + "/*/*/checks.json"); len(files) == 0 {
		files = nested
	}
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %q\n%s", err, files, out)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []struct{ ID, Status, Description string }
	if err := json.Unmarshal(raw, &checks); err != nil || len(checks) == 0 {
		t.Fatalf("%v: %s", err, raw)
	}
	for _, c := range checks {
		if c.ID == "cimd-client-id-used" && strings.Contains(string(raw), conformanceHome+"/oauth/client.json") {
			continue
		}
		if c.Status == "FAILURE" || c.Status == "WARNING" {
			t.Errorf("%s: %s: %s\n%s", c.Status, c.ID, c.Description, out)
		}
	}
}

// beConformanceClient has a person sign in to the server at address as Parley does, and calls each of its
// tools once.
func beConformanceClient(address string) error {
	ctx, stop := context.WithTimeout(context.Background(), 110*time.Second)
	defer stop()
	folder, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	p := willingPerson{home: "http://127.0.0.1:18790"}
	entry := server(address)
	entry.ToolTimeout = time.Minute
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == documentScenario {
		p.home = conformanceHome
	}
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		var client struct {
			ID     string `json:"client_id"`
			Secret string `json:"client_secret"`
		}
		if err := json.Unmarshal([]byte(raw), &client); err != nil {
			return err
		}
		entry.Auth = &mcp.Auth{ClientID: client.ID, ClientSecret: client.Secret}
	}
	p.signIn = signin.New(signin.Config{
		Log:      log,
		Store:    mem.New(),
		KeyFile:  filepath.Join(folder, "key"),
		Home:     func() string { return p.home },
		Ask:      p.answer,
		Withdraw: func(context.Context, string) error { return nil },
		Send:     func(context.Context, chat.Reply) error { return nil },
	})
	here := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	servers := mcp.New(mcp.Config{Log: log, SignIn: p.signIn, Addresses: network.NewGuard(here, nil)})
	p.signIn.Tell(servers)
	servers.Use(map[string]*mcp.Server{"suite": entry})
	running, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		servers.Run(running)
	}()
	defer func() {
		end()
		<-done
		p.signIn.Close()
	}()
	return callAll(ctx, servers)
}

// callAll calls the tool that signs the person in, if it is offered, and then all the others.
func callAll(ctx context.Context, servers *mcp.Servers) error {
	scope := scopeOf("1", false)
	called := map[string]bool{}
	for {
		all, err := servers.Tools(ctx, scope)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return errors.New("no tools are offered")
		}
		before := len(called)
		for _, t := range all {
			if called[t.Name] {
				continue
			}
			called[t.Name] = true
			call := tools.Call{ToolCall: llm.ToolCall{ID: t.Name, Name: t.Name}, Scope: scope, Input: map[string]any{}}
			got, err := t.Run(ctx, call)
			if err != nil {
				return err
			}
			if got.Failed {
				return fmt.Errorf("%s: %s", t.Name, got.Text)
			}
			if t.Name == "mcp_suite_sign_in" {
				break // there are others now
			}
		}
		if len(called) == before {
			return nil
		}
	}
}

// A willingPerson signs in wherever they are asked to.
type willingPerson struct {
	home   string
	signIn *signin.SignIn
}

// answer opens the link of a question and returns the digits of the last page.
func (p *willingPerson) answer(ctx context.Context, r chat.Reply) (int, string, error) {
	from := strings.Index(r.Text, p.home)
	if from < 0 {
		return 0, "", errors.New("the question has no link")
	}
	link, _, _ := strings.Cut(r.Text[from:], "\n")
	jar, err := cookiejar.New(nil)
	if err != nil {
		return 0, "", err
	}
	browser := &http.Client{Jar: jar, Transport: p}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(link, "/start/", "/go/", 1), nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := browser.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	digits := mcptest.Digits.FindString(readAll(resp))
	if digits == "" {
		return 0, "", fmt.Errorf("the browser ended with %s", resp.Status)
	}
	return -1, digits, nil
}

// RoundTrip implements [http.RoundTripper]: Parley's pages are reached without a network.
func (p *willingPerson) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.String(), p.home) {
		return http.DefaultTransport.RoundTrip(r)
	}
	w := httptest.NewRecorder()
	p.signIn.Pages().ServeHTTP(w, r)
	return w.Result(), nil
}
