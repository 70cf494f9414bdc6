package webtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"parley/requiretest"
)

// axeRun lists what axe finds wrong with the page: the rule, what it asks for, and the elements.
const axeRun = `(async () => {
	const { violations } = await axe.run(document, { resultTypes: ["violations"] });
	return violations.map((v) => v.id + ": " + v.help + v.nodes.map((n) => "\n\t" + n.html + "\n\t\t" +
		n.failureSummary.replaceAll("\n", "\n\t\t")).join("")).join("\n");
})()`

// Axe fails t for everything that axe-core, a checker of accessibility, finds wrong with the page that
// ctx shows, as it is now: names, roles, labels, contrast, headings, landmarks. What says which page and
// state that is. The policy of the page does not hold for it, and need not be loosened.
func Axe(ctx context.Context, t testing.TB, what string) {
	t.Helper()
	wrong, err := Violations(ctx, t)
	if err != nil {
		t.Fatalf("axe on %s: %v", what, err)
	}
	if wrong != "" {
		t.Errorf("axe on %s: %s", what, wrong)
	}
}

// Violations returns what axe finds wrong with the page, a rule on each line, with its elements below.
func Violations(ctx context.Context, t testing.TB) (string, error) {
	t.Helper()
	source, err := os.ReadFile(requiretest.PackageFile(t, "axe-core/axe.min.js"))
	if err != nil {
		return "", err
	}
	script := string(source) + "; " + axeRun
	return chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
}

// AxeEverywhere is Axe in light and dark, at the width of a desktop and of a phone.
func AxeEverywhere(ctx context.Context, t testing.TB, what string) {
	t.Helper()
	for _, width := range []int64{1200, 390} {
		for _, scheme := range []string{"light", "dark"} {
			if err := Look(ctx, width, 800, scheme); err != nil {
				t.Fatal(err)
			}
			Axe(ctx, t, fmt.Sprintf("%s at %d px, %s", what, width, scheme))
		}
	}
}

// Look gives the page a size and a colour scheme, "light" or "dark", and nothing in it moves.
func Look(ctx context.Context, width, height int64, scheme string) error {
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil {
		return err
	}
	features := []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: strings.ToLower(scheme)},
		{Name: "prefers-reduced-motion", Value: "reduce"},
	}
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	if err != nil {
		return err
	}
	// Styles that depend on the media are in force once two frames were drawn.
	_, err = chromedp.Run(ctx, chromedp.Evaluate[bool](
		`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))`,
		chromedp.EvalAwaitPromise))
	return err
}
