package parley_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/config"
	"parley/store"
)

// TestStorage checks that docs/internals/storage.md lists the buckets, logs and
// queues of the catalogue, and no others. cmd/gateway.TestStorageIsDocumented
// knows what is in them.
func TestStorage(t *testing.T) {
	const page = "docs/internals/storage.md"
	row, placeholder := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|"), regexp.MustCompile(`<[^<>]+>`)
	variable := regexp.MustCompile(`[A-Z]{2,}`)
	for kind, title := range map[string]string{"bucket": "Buckets", "log": "Logs", "queue": "Queues"} {
		_, section, _ := strings.Cut(documents(t)[page], "\n## "+title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var listed []string
		for _, m := range row.FindAllStringSubmatch(section, -1) {
			listed = append(listed, placeholder.ReplaceAllString(m[1], "x"))
		}
		known := map[string]bool{}
		for _, c := range store.Catalogue() {
			if c.Kind != kind {
				continue
			}
			name := regexp.MustCompile("^" + variable.ReplaceAllString(c.Name, ".+") + "$")
			if !slices.ContainsFunc(listed, name.MatchString) {
				t.Errorf("%s does not list the %s %q", page, kind, c.Name)
			}
			for _, l := range listed {
				known[l] = known[l] || name.MatchString(l)
			}
		}
		for _, l := range listed {
			if !known[l] {
				t.Errorf("%s lists the %s %q, which the catalogue does not have", page, kind, l)
			}
		}
	}
}

// A rule of the catalogue says when something is removed, or why it cannot grow.
var storageRule = regexp.MustCompile(`retention\.|(after|beyond) \d|\d hours after|after a|a week after|all but|when |with the |^owners, who `)

// boundless are the rules of what needs none, because it cannot grow.
var boundless = []string{"nobody: one value", "nobody: a few values"}

// single are the files of which there is one each, whose size people or other rules bound.
var single = []string{
	"`config.json`", "`environment`", "`parley.db`", "`parley.db.mark`", "`lock`", "`mcp-sign-in.key`",
	"`AGENTS.md`, `SOUL.md`, `USER.md`, `TOOLS.md`, `MEMORY.md`, `HEARTBEAT.md`", "`skills/<name>/SKILL.md`, `agents/<name>.md`",
}

// TestRetention checks that everything in the store has a rule for when it is removed
// (P28), and that each period of the config is one of these rules, and documented.
func TestRetention(t *testing.T) {
	key := regexp.MustCompile(`retention\.(\w+)`)
	ruled := map[string]bool{}
	for _, c := range store.Catalogue() {
		if !storageRule.MatchString(c.Trims) && !slices.Contains(boundless, c.Trims) {
			t.Errorf("%s %q has no rule that bounds it: %q", c.Kind, c.Name, c.Trims)
		}
		for _, m := range key.FindAllStringSubmatch(c.Trims, -1) {
			ruled[m[1]] = true
		}
	}
	page := documents(t)["docs/internals/storage.md"]
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`"+`.*) \| never \|$`).FindAllStringSubmatch(page, -1) {
		name, _, _ := strings.Cut(row[1], " | ")
		if !slices.Contains(single, name) {
			t.Errorf("%s is never removed, and no single file", name)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Retention]()) {
		name := f.Tag.Get("json")
		if f.Type != reflect.TypeFor[time.Duration]() {
			continue
		}
		if !strings.Contains(page, "`retention."+name+"`") {
			t.Errorf("docs/internals/storage.md does not say what retention.%s removes", name)
		}
		delete(ruled, name)
	}
	for name := range ruled {
		t.Errorf("the catalogue names retention.%s, which the config does not have", name)
	}
}
