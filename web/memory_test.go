package web

import (
	"context"
	"errors"
	"html"
	"log/slog"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/memory"
	"parley/store"
	"parley/workspace"
)

const mallory = chat.Person("telegram:" + evil + "&who=owner+1")

// memory is a real one of the owner and of an evil person: of each an entry, and
// two changes, of what they wrote by hand and of what they had it remember. The
// second says why, as those of dreams do.
func (f *face) memory(t testing.TB) *memory.Notes {
	t.Helper()
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	past := memory.NewHistory(w, log)
	notes := &memory.Notes{Versions: memory.NewVersions(w.Names(), f.store, log), Past: past, Zone: time.UTC}
	for _, who := range []chat.Person{mallory, chat.TheOwner} {
		_, err := past.Append(ctx, who, memory.Entry{Text: evil})
		if err == nil {
			_, err = notes.Versions.Log(ctx, who, 1) // from here on it is history
		}
		if err == nil {
			err = w.Names().WriteFile(path.Join(who.Folder(), "MEMORY.md"), []byte("# Known\n"))
		}
		if err == nil {
			_, err = notes.Remember(ctx, who, "Tea & "+evil, "")
		}
		changes, last := f.store.Bucket("memory changes"), string(who)+"\x00000000000002"
		if err == nil {
			var c memory.Change
			c, _, err = store.NewTable(changes, store.Report[memory.Change]).Get(ctx, last)
			c.Why, c.Tainted = "Tea & "+evil, true
			_, more := store.NewTable(changes, store.Report[memory.Change]).Put(ctx, last, c, store.Any)
			err = errors.Join(err, more)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return notes
}

// Point 5, R-S27: what a program asks of memory, and what it is answered. Only
// what was done is in the audit log; what is not known leaves no trace.
func TestMemoryAPI(t *testing.T) {
	f := newFace(t)
	boss, them := f.owner(t), "?who="+url.QueryEscape(string(mallory))
	const changes, tea = "/api/memory/changes", `\n+- `
	for _, c := range []struct {
		method, path, body string
		status             int
		says, audited      string
	}{
		{"GET", "/api/memory", "", 200, `{"people":[{"who":"owner","changes":[{"id":"2","who":"owner",`, ""},
		{"GET", changes, "", 200, `{"who":"owner","changes":[{"id":"2",`, ""},
		{"GET", changes + "?who=owner", "", 200, `"by":"/remember"`, ""},
		{"GET", changes + them, "", 200, `"by":"edited"`, ""},
		{"GET", changes + "?who=telegram:7", "", 404, "not found", ""},
		{"GET", changes + "/1", "", 200, `"diff":"--- MEMORY.md\n+++ MEMORY.md\n@@ -0,0 +1 @@\n+# Known\n"`, ""},
		{"GET", changes + "/2" + them, "", 200, tea, ""},
		{"GET", changes + "/2?who=telegram:7", "", 404, "not found", ""},
		{"GET", changes + "/9", "", 404, "not found", ""},
		{"GET", changes + "/..%2F1", "", 404, "not found", ""},
		{"POST", changes + "/9/restore", "", 404, "not found", ""},
		{"POST", changes + "/2/restore?who=telegram:7", "", 404, "not found", ""},
		{"POST", changes + "/2/restore", "", 200, `{"id":"3","who":"owner",`, "memory owner restore 2: owner"},
		{"GET", changes + "/3", "", 200, `\n-- `, ""},
		{"POST", changes + "/2/restore", "", 409, "this change cannot be undone: what it wrote has been changed since", ""},
		{"GET", changes + "/3" + them, "", 404, "not found", ""}, // theirs was left alone
		{"POST", changes + "/3/restore?who=owner", "", 200, `"by":"restore 3"`, "memory owner restore 3: owner"},
	} {
		f.audited = nil
		got := read(t, f.want(t, c.status, asking{method: c.method, path: c.path, body: c.body, by: boss}))
		if told := strings.Join(f.audited, "; "); !strings.Contains(got, c.says) || told != c.audited {
			t.Errorf("%s %s %s answered %s and told %q", c.method, c.path, c.body, got, told)
		}
	}
	people := decoded[struct{ People []personMemory }](t, f.want(t, 200, asking{path: "/api/memory", by: boss})).People
	if len(people) != 2 || len(people[0].Changes) != 1 || people[0].Changes[0].ID != "4" || people[1].Who != mallory || people[1].Changes[0].ID != "2" {
		t.Errorf("the people are %+v", people)
	}
}

// P21: what is damaged is said to be, and the rest is shown.
func TestDamagedMemory(t *testing.T) {
	f := newFace(t)
	boss, b := f.owner(t), f.store.Bucket("memory changes")
	if _, err := b.Put(t.Context(), "owner\x00000000000001", []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	page := read(t, f.want(t, 200, asking{path: "/owner/memory/changes", by: boss}))
	if !strings.Contains(page, `<th scope="row">1</th><td colspan="4" class="bad">damaged on disk</td>`) || !strings.Contains(page, "/remember") {
		t.Errorf("the page is %s", page)
	}
	for _, a := range []asking{{path: "/api/memory/changes/1"}, {method: "POST", path: "/api/memory/changes/1/restore"}} {
		a.by = boss
		if got := read(t, f.want(t, 500, a)); !strings.Contains(got, `"this is damaged on disk; the log says where"`) {
			t.Errorf("%s answers %s", a.path, got)
		}
	}
}

// R-S5: a diff, why it was made and whose it is are text; its lines have classes
// and no styles; the links and the button of the page are about that person,
// whatever their name is.
func TestMemoryPages(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	page, seen := "/owner/memory", ""
	follow := func(link string) {
		t.Helper()
		m := regexp.MustCompile(link).FindAllStringSubmatch(seen, -1)
		if len(m) == 0 {
			t.Fatalf("no %s in %s", link, seen)
		}
		page = html.UnescapeString(m[len(m)-1][1])
	}
	look := func() {
		t.Helper()
		seen = read(t, f.want(t, 200, asking{path: page, by: boss}))
		if strings.Contains(seen, "<img") || strings.Contains(seen, "style=") {
			t.Errorf("%s has markup: %s", page, seen)
		}
	}
	look()
	follow(`href="(/owner/memory\?who=[^"]*telegram[^"]*)"`)
	look()
	follow(`href="(/owner/memory/changes\?who=[^"]*telegram[^"]*)"`)
	look()
	list := page
	for _, want := range []string{`<td>/remember</td><td>MEMORY.md</td><td class="text">Tea &amp; &lt;img src=x onerror=&#34;alert(1)&#34;&gt; <small>(contains untrusted content)</small>`, `<td>edited</td>`} {
		if !strings.Contains(seen, want) {
			t.Errorf("no %s in %s", want, seen)
		}
	}
	if strings.Index(seen, "/remember</td>") > strings.Index(seen, "edited</td>") {
		t.Error("the latest is not the first")
	}
	follow(`<th scope="row"><a href="(/owner/memory/changes/2\?[^"]*)"`)
	look()
	for _, want := range []string{
		"<span class=\"at\">--- MEMORY.md\n</span><span class=\"at\">+++ MEMORY.md\n</span><span class=\"at\">@@ -1 +1,2 @@\n</span><span class=\"same\"> # Known\n</span><span class=\"add\">+- noted ",
		": Tea &amp; &lt;img src=x onerror=&#34;alert(1)&#34;&gt;\n</span></pre>",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("no %s in %s", want, seen)
		}
	}
	diff := seen
	follow(`data-post="([^"]*)"`)
	f.want(t, 200, asking{method: "POST", path: page, body: `{}`, by: boss})
	if said := "memory owner restore 2: " + string(mallory); f.audited[len(f.audited)-1] != said {
		t.Errorf("told %q, want %q", f.audited, said)
	}
	seen = diff
	follow(`data-then="([^"]*)"`)
	if look(); strings.Count(seen, `<th scope="row">`) != 3 {
		t.Errorf("after %s and the button, %s is %s", list, page, seen)
	}
	follow(`href="(/owner/memory/changes/3\?[^"]*)"`)
	if look(); !strings.Contains(seen, `<span class="cut">-- noted `) {
		t.Errorf("what was undone is %s", seen)
	}
}
