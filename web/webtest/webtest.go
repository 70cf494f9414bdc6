// Package webtest has a real browser for tests of pages.
package webtest

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
)

// Browser starts a browser without a screen, which ends with t. Each
// chromedp.NewContext of it is a window. A machine without a browser skips t,
// or fails it where PARLEY_REQUIRE is "all".
func Browser(t testing.TB) context.Context {
	t.Helper()
	var exe string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if exe, _ = exec.LookPath(name); exe != "" {
			break
		}
	}
	switch {
	case exe == "" && os.Getenv("PARLEY_REQUIRE") == "all":
		t.Fatal("there is no chromium here")
	case exe == "":
		t.Skip("there is no chromium here")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(exe), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("hide-scrollbars", true))
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
