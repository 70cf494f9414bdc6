// Package webtest has a real browser for tests of pages.
package webtest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"parley/requiretest"
)

// Browser starts a browser without a screen, which ends with t. Each
// chromedp.NewContext of it is a window. On a machine without a browser t is skipped,
// as requiretest says. If the machine has the headless shell, it is that: Chromium's engine
// without what surrounds pages, which takes half of the time.
func Browser(t testing.TB) context.Context {
	t.Helper()
	return start(t, append([]string{
		"/usr/lib/chromium/chromium-headless-shell", // Debian's command of that name is a script, which does not end the browser
		"chrome-headless-shell",
	}, whole()...))
}

// WholeBrowser is Browser for tests of what the headless shell lacks: notifications and the viewer of PDFs.
func WholeBrowser(t testing.TB) context.Context {
	t.Helper()
	return start(t, whole())
}

func whole() []string { return []string{"chromium", "chromium-browser", "google-chrome"} }

// start starts the first of those browsers that is here.
func start(t testing.TB, names []string) context.Context {
	t.Helper()
	var exe string
	for _, name := range names {
		if exe, _ = exec.LookPath(name); exe != "" {
			break
		}
	}
	if exe == "" {
		requiretest.Missing(t, "there is no chromium here")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(exe), chromedp.UserDataDir(userData(t)), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-fake-ui-for-media-stream", true)) // its microphone beeps
	if os.Getuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		end()
		cancel()
	})
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start %s: %v", exe, err)
	}
	return ctx
}

// userData makes a folder for the data of a browser, which is removed at the end of t. Processes that the browser
// started may write there for a moment after it has ended.
func userData(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := os.RemoveAll(folder)
		for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = os.RemoveAll(folder) {
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return folder
}

// Loaded returns a condition in JavaScript: that one, of a page that has loaded. Before
// that its scripts may not yet listen to clicks. Nor is it true of what is not there yet.
func Loaded(condition string) string {
	return `(() => { try { return document.readyState === "complete" && Boolean(` + condition + `) }
		catch (e) { if (e instanceof TypeError) return false; throw e } })()`
}

// Until waits until a condition in JavaScript is true of the page, which may load meanwhile.
func Until(ctx context.Context, t testing.TB, condition string) {
	t.Helper()
	var ok bool
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if ok, err = chromedp.Run(ctx, chromedp.Evaluate[bool](Loaded(condition))); ok && err == nil {
			return
		}
		_, _ = chromedp.Run(ctx, chromedp.Sleep(50*time.Millisecond))
	}
	page, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location + "\n" + document.documentElement.outerHTML`))
	t.Fatalf("it never came to %s (%v)\n%s", condition, err, page)
}

// submitAll fills the fields of every form that only scripts send, clicks each of its
// buttons, and returns what came of it: the forms, what changed, and the links.
const submitAll = `(async () => {
	const changes = [];
	const forms = [...document.forms].filter((form) => !form.hasAttribute("action"));
	navigation.addEventListener("navigate", (event) => {
		changes.push("went to " + event.destination.url);
		event.preventDefault();
	});
	const state = () => forms.map((form) => form.outerHTML + [...form.elements].map((field) => field.value + field.checked)).join();
	for (const form of forms) {
		form.noValidate = true;
		for (const field of form.querySelectorAll("input:not([type]), input[type=password], input[type=search], textarea"))
			field.value = "typed";
		for (const button of form.querySelectorAll("button:not([type=button])")) {
			const before = state();
			button.click();
			await new Promise((done) => setTimeout(done, 100));
			if (state() !== before) changes.push("another content after " + button.outerHTML);
		}
	}
	return {
		forms: forms.length,
		changes,
		links: [...document.links].filter((a) => a.origin === location.origin).map((a) => a.pathname + a.search),
	};
})()`

// SubmitWithoutScripts visits the pages of the server at base and those that they link to, if
// their paths begin with one of the prefixes. The scripts of the pages do not load,
// as on a slow line. It clicks the buttons of every form that only scripts send, and
// fails t if one makes the browser leave the page or lose what was typed: it would
// write what was typed into the address. It returns how many forms there were.
func SubmitWithoutScripts(t testing.TB, ctx context.Context, base string, pages []string, prefixes ...string) (forms int) {
	t.Helper()
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	block := []*network.BlockPattern{{URLPattern: "*://*:*/*.js", Block: true}}
	if _, err := chromedp.Call(ctx, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: block}); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pages); i++ {
		if err := chromedp.Do(ctx, chromedp.Navigate(base+pages[i])); err != nil {
			t.Fatalf("%s: %v", pages[i], err)
		}
		found, err := chromedp.Run(ctx, chromedp.Evaluate[struct {
			Forms   int
			Changes []string
			Links   []string
		}](submitAll, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s: %v", pages[i], err)
		}
		for _, change := range found.Changes {
			t.Errorf("%s: %s", pages[i], change)
		}
		forms += found.Forms
		for _, link := range found.Links {
			linked := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(link, prefix) })
			if linked && !slices.Contains(pages, link) {
				pages = append(pages, link)
			}
		}
	}
	return forms
}
