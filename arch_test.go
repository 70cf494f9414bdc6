package parley_test

import (
	"encoding/json"
	"go/ast"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "parley/"

// early is a module of our own, in tools/sandbox/early. The patterns of the go command do not lead there.
const early = "early.parley"

// floors lists what each room may import of the house. A room's own folders,
// its drivers, may import what the room may, and the room itself.
var floors = map[string]string{
	"branches":    "",
	"chat":        "",
	"panics":      "",
	"texts":       "",
	"llm":         "when",
	"search":      "",
	"store":       "",
	"workspace":   "",
	"timetest":    "",
	"requiretest": "",
	"lazyregexp":  "", // as if it were of the standard library: every room may import it
	"secrets":     "",
	"when":        "",
	"forms":       "chat texts",
	"channels":    "branches chat forms panics store texts workspace",
	"tools":       "chat forms llm panics search secrets store texts tools/untrusted workspace",
	"memory":      "chat llm search store texts workspace",
	"scheduler":   "chat panics store texts when",
	"audit":       "store",
	"redact":      "chat",
	"response":    "",
	"backup":      "chat store store/bolt store/bolt/dirlock store/bolt/refusal texts workspace",
	"agent":       "branches chat llm memory panics store texts tools tools/untrusted workspace",
	"handover":    "store/bolt/dirlock",
	"imports":     "chat imports/sqlite scheduler secrets store store/mem workspace",
	"web":         "audit channels/admission chat llm memory redact response scheduler scheduler/jobs store texts tools workspace",
	"config":      "channels/admission host scheduler secrets tools/mcp tools/network tools/sandbox/proxy tools/web web",
	"host":        "store",
	"retention":   "host store",
	"sizes":       "store texts workspace",
	"admin":       "agent agent/replay audit backup channels/admission channels/console chat host scheduler scheduler/jobs scheduler/rehearsal store/bolt store/bolt/dirlock store/mem tools/mcp/manage tools/mcp/signin tools/mcp/serve web",
	"doctor":      "backup channels channels/console channels/network host llm store/bolt store/bolt/dirlock store/bolt/refusal tools/sandbox web",
	"cmd":         "admin agent audit backup channels chat config doctor handover host imports llm memory redact retention scheduler store texts tools web workspace",
}

// rooms lists what each inner room may import. The room above imports them, and
// none of them imports it, so that each can be understood without it.
var rooms = map[string]string{
	"channels/admission":    "channels/safetext chat store",
	"channels/choices":      "channels/safetext chat forms texts",
	"channels/commands":     "channels/admission channels/safetext chat store texts",
	"channels/deadletter":   "chat store",
	"channels/safetext":     "chat",
	"channels/traffic":      "",
	"tools/network":         "",
	"tools/arguments":       "chat",
	"tools/catalog":         "chat llm search tools tools/arguments",
	"tools/mcp/manage":      "chat texts tools tools/mcp tools/mcp/pins tools/mcp/signin",
	"agent/activity":        "chat",
	"agent/budget":          "chat llm store texts",
	"agent/conversation":    "branches chat llm memory panics store texts tools tools/untrusted workspace",
	"agent/deadletter":      "chat store",
	"agent/live":            "agent/conversation chat llm texts tools tools/arguments",
	"agent/modelerrors":     "llm texts",
	"agent/pastusage":       "agent/conversation chat llm store",
	"agent/pastturns":       "agent/conversation chat",
	"agent/rewind":          "agent/conversation agent/pastturns branches chat tools",
	"agent/replay":          "agent/conversation branches chat llm store texts tools",
	"agent/subagents":       "chat store texts tools",
	"agent/receipts":        "agent/conversation agent/pastturns branches chat llm store texts tools",
	"agent/sessioncommands": "agent/conversation agent/receipts chat texts tools",
	"agent/timeline":        "agent/conversation agent/live agent/receipts chat llm texts tools",
	"agent/titles":          "chat llm",
	"agent/underway":        "agent/activity agent/subagents chat store tools",
	"agent/trimming":        "agent/conversation chat store",
	"agent/summary":         "agent/budget agent/conversation branches chat llm memory tools",
	"store/bolt/contents":   "store store/bolt",
	"tools/mcp/serve":       "chat llm scheduler scheduler/jobs store texts tools workspace",
	"web/chart":             "web/layout",
	"web/dashboard":         "chat llm response web/chart web/layout web/live web/traffic",
	"web/live":              "response web/layout",
	"web/observe":           "chat llm tools web/traffic",
	"web/traffic":           "store",
	"web/layout":            "chat response",
	"web/logs":              "chat redact response web/layout web/live",
	"web/mcppages":          "chat response tools/mcp tools/mcp/manage tools/mcp/pins tools/mcp/signin web/layout",
	"web/configpages":       "chat response store web/layout",
	"web/memorypages":       "chat memory response store web/layout",
	"web/schedule":          "chat response scheduler scheduler/jobs scheduler/rehearsal web/layout when",
	"web/peoplepages":       "channels/admission chat llm response store web/layout",
	"web/talkpages":         "channels/markdown chat store web/layout",
	"web/toolpages":         "chat response store tools tools/custom tools/policy web/layout",
}

// ground names the rooms that import the standard library only.
var ground = []string{"branches", "chat", early, "lazyregexp", "llm", "panics", "search", "secrets", "store", "texts", "when", "workspace"}

// homes names the one folder of each third-party library, or the few that make pages.
var homes = map[string]string{
	"github.com/go-telegram/bot":        "channels/telegram",
	"github.com/yuin/goldmark":          "channels/markdown",
	"github.com/peterh/liner":           "channels/console",
	"github.com/sashabaranov/go-openai": "llm/openai",
	"go.etcd.io/bbolt":                  "store/bolt store/bolt/compact store/bolt/handle store/bolt/mapped",
	"github.com/nats-io/nats.go":        "store/nats",
	"github.com/google/jsonschema-go":   "tools/arguments tools/custom",
	"github.com/spf13/cobra":            "admin/commands cmd/gateway cmd/gateway/moving",
	"github.com/spf13/pflag":            "admin/commands", // comes with cobra
	"github.com/tailscale/hujson":       "config",
	"github.com/fsnotify/fsnotify":      "config",

	"github.com/bmatcuk/doublestar":                "tools/files",
	"github.com/ledongthuc/pdf":                    "tools/files",
	"github.com/go-shiori/go-readability":          "tools/web",
	"github.com/JohannesKaufmann/html-to-markdown": "tools/web",
	"go.starlark.net":                              "tools/data",
	"mvdan.cc/sh":                                  "tools/shell",
	"github.com/modelcontextprotocol/go-sdk":       "tools/mcp tools/mcp/elicit tools/mcp/pins tools/mcp/results tools/mcp/sampling tools/mcp/signin tools/mcp/serve",
	"github.com/yosida95/uritemplate":              "tools/mcp",
	"github.com/landlock-lsm/go-landlock":          "tools/sandbox/landlock",

	// Our own module for processes that must begin before everything else is initialised.
	"early.parley": "tools/python tools/sandbox tools/sandbox/landlock tools/sandbox/none tools/sandbox/probe tools/sandbox/seccomp",

	"github.com/bwmarrin/discordgo":      "channels/discord",
	"github.com/VictoriaMetrics/metrics": "web/observe",
	"go.opentelemetry.io/otel":           "web/observe",

	"maragu.dev/gomponents": "channels/web channels/web/cards channels/web/parts response tools/mcp/signin web web/chart web/configpages web/dashboard web/layout web/live web/logs web/mcppages web/memorypages web/peoplepages web/schedule web/talkpages web/toolpages",

	"github.com/robfig/cron": "scheduler",
	"go.yaml.in/yaml":        "imports memory/skills",
}

// anywhere lists the small helpers that need no home.
var anywhere = []string{"golang.org/x/", "github.com/cenkalti/backoff/", "github.com/aymanbagabas/go-udiff"}

// shared are folders that a room's drivers may import although they are not the room itself.
var shared = map[string]string{
	"channels": "channels/greeting channels/markdown channels/network channels/safetext channels/web/app channels/web/assets channels/web/cards channels/web/export channels/web/filekind channels/web/notify channels/web/parts channels/web/titles channels/webpush response",
	"store":    "store/bolt/checksum store/bolt/compact store/bolt/dirlock store/bolt/handle store/bolt/layer store/bolt/mapped store/bolt/mark store/bolt/pages store/bolt/refusal store/bolt/usage store/bolt/wal store/nats/tunnel",
	"tools": "response scheduler/jobs tools/custom/template tools/mcp tools/mcp/flood tools/mcp/results tools/network tools/sandbox tools/sandbox/proxy " +
		"tools/sandbox/seccomp tools/shell/changes tools/shell/recording when",
}

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

func packages(t *testing.T) []pkg {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...", early).Output()
	if err != nil {
		t.Fatal(err)
	}
	var ps []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	return ps
}

// TestFloors checks that arrows between rooms point down, and that drivers do
// not import each other.
func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		path, inside := strings.CutPrefix(p.ImportPath, module)
		if !inside {
			continue
		}
		room, _, driver := strings.Cut(path, "/")
		may, known := floors[room]
		allowed, inner := rooms[path]
		if inner {
			may = allowed
			driver = false
		}
		if !known {
			t.Errorf("%s: no room named %s in floors", path, room)
		}
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, module)
			switch {
			case !driver && !inner && isRoom(dep) && strings.HasPrefix(dep, room+"/"):
			case !ours, dep == "lazyregexp", room == "cmd", slices.Contains(strings.Fields(may), dep):
			case driver && (dep == room || slices.Contains(strings.Fields(shared[room]), dep)):
			case strings.HasSuffix(path, "test"): // a fake or a conformance test may use what it tests with
			default:
				t.Errorf("%s must not import %s", path, dep)
			}
		}
	}
}

func isRoom(path string) bool {
	_, ok := rooms[path]
	return ok
}

// TestOnlyTheProgramReadsConfig checks that every other package takes a small
// Config of its own.
func TestOnlyTheProgramReadsConfig(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != module+"cmd/gateway" && slices.Contains(p.Imports, module+"config") {
			t.Errorf("%s must not import config", p.ImportPath)
		}
	}
}

// TestLibraries checks that the ground floor imports the standard library only,
// and that every third-party library lives in one folder.
func TestLibraries(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			if !strings.Contains(first, ".") || strings.HasSuffix(path, "test") {
				continue
			}
			if slices.Contains(ground, path) {
				t.Errorf("%s is on the ground floor and must not import %s", path, imp)
			}
			if slices.ContainsFunc(anywhere, func(a string) bool { return strings.HasPrefix(imp, a) }) {
				continue
			}
			home, ok := "", false
			for lib, h := range homes {
				if imp == lib || strings.HasPrefix(imp, lib+"/") {
					home, ok = h, true
				}
			}
			if !ok {
				t.Errorf("%s imports %s, which has no home in arch_test.go", path, imp)
			} else if !slices.Contains(strings.Fields(home), path) {
				t.Errorf("%s imports %s, whose home is %s", path, imp, home)
			}
		}
	}
}

// TestForms checks that every form of a page names the address that the browser sends
// it to, or is a response.ScriptForm: any other is sent to the page that it is on,
// with what was typed in the address, if it is submitted before the scripts listen.
func TestForms(t *testing.T) {
	set, all := sources(t)
	for _, s := range all {
		for _, f := range s.files {
			ast.Inspect(f.tree, func(n ast.Node) bool {
				form, ok := n.(*ast.CallExpr)
				if !ok || s.path == "response" || !isCallOf(form, "h", "Form") {
					return true
				}
				addressed := slices.ContainsFunc(form.Args, func(arg ast.Expr) bool { return isCallOf(arg, "h", "Action") })
				if !addressed {
					t.Errorf("%s: a form without an address; response.ScriptForm makes one", set.Position(form.Pos()))
				}
				return true
			})
		}
	}
}

// isCallOf reports whether n is a call of that function of the package imported as pkg.
func isCallOf(n ast.Expr, pkg, function string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := name.X.(*ast.Ident)
	return ok && of.Name == pkg && name.Sel.Name == function
}

// TestNoTemplates checks that the program has no templates. They call methods by
// their names, so that the linker must keep every exported method of every type:
// 4 MB. Pages are made by package gomponents, other texts by package fmt.
func TestNoTemplates(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			if imp == "text/template" || imp == "html/template" {
				t.Errorf("%s imports %s, which makes the program 4 MB larger", p.ImportPath, imp)
			}
		}
	}
}
