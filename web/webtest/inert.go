package webtest

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Hostile are texts that become markup, scripts or addresses where a page does
// not escape them.
var Hostile = []string{
	`"><script>alert(1)</script>`,
	`'><img src=x onerror=alert(1)>`,
	`" onclick="alert(1)" x="`,
	`' autofocus onfocus=alert(1) x='`,
	`javascript:alert(1)//"><a href="javascript:alert(1)">`,
	`//evil.example/<base href="//evil.example/">`,
	`</title></textarea></script><svg onload=alert(1)>`,
	`&lt;script&gt;alert(1)&lt;/script&gt;`,
	"\x00<\x00script>alert(1)</script>",
}

var (
	// addresses are the attributes that a browser, or a script of ours, goes to.
	addresses = []string{"href", "src", "action", "formaction", "poster", "srcset", "xlink:href",
		"data-post", "data-patch", "data-delete", "data-then"}
	// forbidden are elements that no page of ours has.
	forbidden = []string{"style", "iframe", "object", "embed", "base", "frame", "math", "template"}
)

// Active returns what could act in a page and is not ours: scripts, handlers,
// styles, and addresses of other servers.
func Active(page string) (faults []string) {
	tree, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return []string{err.Error()}
	}
	for n := range tree.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		scriptText := n.Data == "script" && n.FirstChild != nil
		if scriptText || slices.Contains(forbidden, n.Data) {
			faults = append(faults, "element "+n.Data)
		}
		for _, a := range n.Attr {
			if !harmless(n.Data, a) {
				faults = append(faults, fmt.Sprintf("%s of %s: %q", a.Key, n.Data, a.Val))
			}
		}
	}
	return faults
}

func harmless(element string, a html.Attribute) bool {
	if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
		return false
	}
	if !slices.Contains(addresses, a.Key) {
		return true
	}
	within := strings.HasPrefix(a.Val, "#") && element != "script"
	return within || strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "//")
}

// Shows reports whether a reader of the page sees text, in an element or as the
// value of an attribute.
func Shows(page, text string) bool {
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	tree, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return false
	}
	for n := range tree.Descendants() {
		if n.Type == html.TextNode && strings.Contains(n.Data, text) {
			return true
		}
		for _, a := range n.Attr {
			if strings.Contains(a.Val, text) {
				return true
			}
		}
	}
	return false
}
