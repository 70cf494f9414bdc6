package discord_test

import (
	"strings"
	"testing"

	"parley/channels/discord/discordtest"
)

// Discord's app parses Markdown less strictly than we do: ordinary text is sent so
// that it is shown unchanged, and markup stays markup.
func TestOrdinaryTextIsKept(t *testing.T) {
	h := newHarness(t, discordtest.Config{}, nil)
	for _, src := range []string{
		"5*3*2 = 30", "2**3**2 = 512", "2 * 3 * 4", "面积=长*宽*高", "src/**/*.go, test/**/*.go", "*.go,*.md", "0 0 1,15 * *", "f(*args, **kwargs) and x**n",
		"pkg/__init__.py", "__init__ and __main__", "snake_case_name", "snake_case and foo_ and bar_", "3~5元", "a~~b~~c~~d", "a || b || c",
		`C:\Users\_me\*.txt and C:\_tmp\*`, `\\server\share\_x_`, `\d+\.\d+`, "3. a\n5. b\n6. c\n9. d", ">>> print(x)", "a\n\n    5*3*2 = __x__", "|| x ||",
		"https://x.com/pkg/__init__.py and https://x.com/*/_a_/*", `"https://x.com/__a__/b"`, "www.x.com/__a__/b", "😀*x*y", "*", "a*", "**", "_", "* a*b*c",
		`C:\用户\桌面\x.txt`, `"https://x.com/a","b":"__c__"`, "https://x.com/a，5*3*2", `https://x.com/a\_b`, "see [l](https://x.com/a)/5*3*2",
		"2 ** 3 ** 2", "a ** b", "__FILE__ and __LINE__", ">_<", `s/\//\\/g`, "arr[i](j)", "f[0](x*y)", `..\_build\*.obj`,
	} {
		sent := strings.Join(h.ch.Split(src), "\n")
		if got := discordtest.Shown(sent); strings.TrimSpace(got) != src {
			t.Errorf("%q is sent as %q and shown as %q", src, sent, got)
		}
	}
	for src, want := range map[string]string{
		"**a** *b* __c d__ ~~e~~ `f*g*` [h](https://i.j/k_l_m) \\*n\\*": "**a** *b* __c d__ ~~e~~ `f*g*` [h](https://i.j/k_l_m) \\*n\\*",
		`\~~a~~ \||b||`:                    `\~~a\~\~ \||b\|\|`,
		"```go title=\"__a__.go\"\nx\n```": "title=\"\\_\\_a\\_\\_.go\"\n```go\nx\n```",
		"~~~so: it is":                     "so: it is",
		"- a\n- b\n\n1. c\n2. d_e":         "- a\n- b\n\n1. c\n2. d_e",
		"```\n5*3*2\n```\n> q":             "```\n5*3*2\n```\n> q",
		"**Note：**这是 2*3*4":                "**Note：**这是 2\\*3\\*4",
		"|a|b|\n|-|-|\n|1|2|3*4*5|":        "```\na  b\n───────────\n1  2  3*4*5\n```",
	} {
		if got := strings.Join(h.ch.Split(src), "|"); got != want {
			t.Errorf("%q is sent as %q, want %q", src, got, want)
		}
	}
}
