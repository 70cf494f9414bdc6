package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"parley/texts"
	"parley/timetest"
	"parley/tools"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); string(want) != got || err != nil {
		t.Errorf("%s: %v; go test -update makes it\n%s", path, err, got)
	}
}

func bomb(n int) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, n))
	_ = z.Close()
	return b.Bytes()
}

func (s *site) article() {
	page, err := os.ReadFile("testdata/article.html")
	if err != nil {
		s.t.Fatal(err)
	}
	s.page("/dir/article.html", "text/html; charset=utf-8", string(page))
}

// D-003, D-025: what the model is told, byte for byte.
func TestSchemas(t *testing.T) {
	var b strings.Builder
	for _, tool := range newKit(t, Config{}).Tools() {
		fmt.Fprintf(&b, "%s (%s): %s\n%s\n\n", tool.Name, tool.AliasOf, tool.Description, tool.Schema)
	}
	golden(t, "schemas.txt", b.String())
}

// E-009, R-S12, D-002, A-075: each tool that reads the web can be recognised
// when it asks the same again, is known to bring what strangers wrote, may run
// beside others and is remembered for five minutes.
func TestHints(t *testing.T) {
	list, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list {
		if tool.Query == nil || !tool.Untrusted || !tool.Parallel() || !tool.Cacheable || tool.Category != "crawler" {
			t.Errorf("%s: hints %+v", tool.Name, tool.Hints)
		}
	}
	// merge.md §2.6: what is listed.
	var names []string
	for _, spec := range newKit(t, Config{}).Specs() {
		names = append(names, spec.Name)
	}
	if got := strings.Join(names, " "); got != "crawl_batch fetch_page web_fetch web_search" {
		t.Errorf("listed: %s", got)
	}
}

// E-006, E-007, E-008: the keys of lookups.
func TestQueries(t *testing.T) {
	kit := newKit(t, Config{})
	for _, c := range []struct{ id, tool, args, want string }{
		{"E-006", "google_search", `{"query":"go 1.26"}`, "google_search_go 1.26"},
		{"E-006", "sogou_search", `{"query":"天气"}`, "sogou_search_天气"},
		{"E-006", "scrape_website", `{"url":"https://go.dev/x?a=b#c"}`, "scrape_website_https://go.dev/x?a=b"},
		{"E-006", "scrape", `{"url":"https://go.dev/"}`, "scrape_https://go.dev/"},
		{"E-006", "web_search", `{"query":" go "}`, "web_search_go"},
		{"D-086", "web_search", `{"query":"go","max_results":10}`, "web_search_go_10"},
		{"D-086", "web_fetch", `{"url":"HTTPS://Go.Dev:443#top"}`, "web_fetch_https://go.dev/"},
		{"D-086", "web_fetch", `{"url":"http://go.dev:8080/a/","extractMode":"text","maxChars":100}`, "web_fetch_http://go.dev:8080/a/_text_100"},
		{"E-009", "fetch_page", `{"url":"https://go.dev/","extract_type":"links"}`, "fetch_page_https://go.dev/_links"},
		{"E-009", "crawl_batch", `{"urls":["https://go.dev","x"]}`, "crawl_batch_https://go.dev/ x"},
		{"E-008", "google_search", `{}`, "google_search_"},
		{"E-008", "web_fetch", `{}`, "web_fetch_"},
		{"E-008", "web_fetch", `{"url":null}`, "web_fetch_"},
		{"E-008", "web_fetch", `{"url":"http://[::1"}`, "web_fetch_http://[::1"},
	} {
		var args map[string]any
		if err := json.Unmarshal([]byte(c.args), &args); err != nil {
			t.Fatal(err)
		}
		tool, _ := kit.Tool(c.tool)
		if got := tool.Query(args); got != c.want {
			t.Errorf("%s %s(%s): %q, want %q", c.id, c.tool, c.args, got, c.want)
		}
	}
}

// C-015: what a call is about to do, of arguments that are still coming in.
func TestPreview(t *testing.T) {
	kit := newKit(t, Config{})
	for tool, want := range map[string]string{"web_search": "go", "web_fetch": "https://go.dev/", "crawl_batch": "https://a.b/ https://c.d/"} {
		tool, _ := kit.Tool(tool)
		args := map[string]any{"query": "go", "url": "https://go.dev/", "urls": []any{"https://a.b", "https://c.d"}}
		if got := tool.Preview(texts.English().Agent.Steps, args); got != want {
			t.Errorf("%s: %q, want %q", tool.Name, got, want)
		}
		if got := tool.Preview(texts.English().Agent.Steps, nil); got != "" {
			t.Errorf("%s without arguments: %q", tool.Name, got)
		}
	}
}

func (s *site) fetch(args string) answer {
	s.t.Helper()
	r := s.call("web_fetch", args)
	a, ok := r.Data.(answer)
	if !ok {
		s.t.Fatalf("web_fetch(%s) = %s", args, r.Text)
	}
	return a
}

// D-081, D-084, D-085: web_fetch, both ways.
func TestFetch(t *testing.T) {
	s := newSite(t)
	s.article()
	for _, mode := range []string{"markdown", "text"} {
		r := s.call("web_fetch", `{"url":"%s/dir/article.html#part","extractMode":"`+mode+`"}`)
		var a map[string]any
		if err := json.Unmarshal([]byte(r.Text), &a); err != nil {
			t.Fatal(err)
		}
		text := a["text"].(string)
		golden(t, "article."+mode, strings.ReplaceAll(text, s.srv.URL, "http://site"))
		delete(a, "text")
		want := map[string]any{"url": s.srv.URL + "/dir/article.html#part", "finalUrl": s.srv.URL + "/dir/article.html#part", "status": 200,
			"extractor": "readability", "truncated": false, "length": utf8.RuneCountInString(strings.TrimPrefix(text, banner)), "untrusted": true}
		if quote(a) != quote(want) {
			t.Errorf("%s: %s, want %s", mode, quote(a), quote(want))
		}
		if !r.Tainted && r.Failed {
			t.Errorf("failed")
		}
	}
}

// D-081: the number of characters, and aliases of E-005.
func TestFetchCut(t *testing.T) {
	s := newSite(t)
	s.page("/long", "text/plain", strings.Repeat("ä", 60_000))
	for _, c := range []struct {
		args string
		want int
		cut  bool
	}{
		{`{"url":"%s/long"}`, 50_000, true},
		{`{"url":"%s/long","maxChars":100}`, 100, true},
		{`{"link":"%s/long","max_chars":60000}`, 60_000, false},
		{`{"uri":"%s/long","maxChars":"70000"}`, 60_000, false},
	} {
		a := s.fetch(c.args)
		if a.Length != c.want || a.Truncated != c.cut || utf8.RuneCountInString(a.Text) != c.want+utf8.RuneCountInString(banner) {
			t.Errorf("%s: length %d, truncated %v", c.args, a.Length, a.Truncated)
		}
	}
	s.page("/big", "text/html", strings.Repeat("x", maxHTML-100)+"<p>almost</p>"+strings.Repeat("x", 100)+"the end")
	if a := s.fetch(`{"url":"%s/big","maxChars":9000000}`); !a.Truncated || strings.Contains(a.Text, "the end") || !strings.Contains(a.Text, "almost") {
		t.Errorf("a big page: truncated %v, %d characters", a.Truncated, a.Length)
	}
	many := &page{text: strings.Repeat("<br>", maxTags+2) + "the end"}
	if doc, err := many.parse(); err != nil || !many.cut || strings.Contains(plain(doc), "the end") {
		t.Errorf("many tags: err %v, cut %v", err, many.cut)
	}
	r := s.call("web_fetch", `{"url":"%s/long","maxChars":99}`)
	if r.Text != "Error: Invalid parameters for tool 'web_fetch': maxChars must be >= 100"+hint {
		t.Error(r.Text)
	}
}

// E-015, E-016, E-017: a demonstration shows 20,000 characters of a page, and all the other keys.
func TestDemo(t *testing.T) {
	s := newSite(t, func(c *Config) { c.Demo = true })
	s.page("/long", "text/plain", strings.Repeat("x", 60_000))
	want := banner + strings.Repeat("x", 20_000)
	if a := s.fetch(`{"url":"%s/long"}`); a.Text != want || !a.Truncated || a.Status != 200 || a.URL == "" {
		t.Errorf("web_fetch: %d characters", a.Length)
	}
	for _, tool := range []string{"fetch_page", "scrape", "scrape_website"} {
		r := s.call(tool, `{"url":"%s/long"}`)
		if m, _ := r.Data.(map[string]any); m["text"] != want || m["url"] != s.srv.URL+"/long" {
			t.Errorf("%s: %.100s", tool, r.Text)
		}
	}
}

// A page in any encoding, whatever is said of it; JSON and plain text as they are.
func TestContent(t *testing.T) {
	s := newSite(t)
	enc := func(b []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const word = "東京 is far"
	sjis := enc(japanese.ShiftJIS.NewEncoder().Bytes([]byte(word)))
	jis := enc(japanese.ISO2022JP.NewEncoder().Bytes([]byte(word)))
	utf16 := enc(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes([]byte(word)))
	gbk := enc(simplifiedchinese.GBK.NewEncoder().Bytes([]byte("天气")))
	late := strings.Repeat("x", 2000) + " später"
	for i, c := range []struct{ media, body, want, extractor string }{
		{"text/plain; charset=utf-8", word, word, "raw"},
		{"text/plain; charset=shift_jis", sjis, word, "raw"},
		{"text/plain; charset=iso-2022-jp", jis, word, "raw"},
		{"text/plain; charset=utf-16", utf16, word, "raw"},
		{"text/plain", utf16, word, "raw"},
		{"text/plain; charset=iso-8859-1", "caf\xe9", "café", "raw"},
		{"text/plain; charset=utf-8", "caf\xe9", "café", "raw"},             // a lie
		{"text/plain; charset=iso-8859-1", word, word, "raw"},               // a lie
		{"text/plain", late, late, "raw"},                                   // first bytes tell nothing
		{"text/plain; charset=nonsense", "\ufeffword", "word", "raw"},       //
		{"text/html", "<meta charset=gbk><p>" + gbk, "天气", "readability"},   // said in the page
		{"application/json", `{"a": "é"}`, `{"a": "é"}`, "raw"},             //
		{"application/ld+json", `[1]`, `[1]`, "raw"},                        //
		{"application/rss+xml", `<rss/>`, `<rss/>`, "raw"},                  //
		{"", "<!DOCTYPE html><title>T</title><p>hello", "# T\n\nhello", ""}, // not said: looked at
		{"application/octet-stream", "just text", "just text", "raw"},
		{"text/plain", "BMW is a maker of cars", "BMW is a maker of cars", "raw"},
		{"text/html", "", "", "page"},
	} {
		path := fmt.Sprintf("/%d", i)
		s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{c.media}
			_, _ = w.Write([]byte(c.body))
		})
		a := s.fetch(`{"url":"%s` + path + `"}`)
		if a.Text != banner+c.want || c.extractor != "" && a.Extractor != c.extractor {
			t.Errorf("%s: %s %q, want %s %q", c.media, a.Extractor, a.Text, c.extractor, c.want)
		}
	}
}

// A-034, D-085: errors as a failed call with {"error","url"}.
func TestErrors(t *testing.T) {
	s := newSite(t)
	s.mux.HandleFunc("/500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	s.mux.HandleFunc("/304", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) })
	s.page("/pdf", "application/pdf", "%PDF-1.7")
	s.page("/hidden", "text/html", "%PDF-1.7")
	s.page("/png", "image/png", "\x89PNG\r\n\x1a\n\x00\x00")
	s.page("/lie", "text/html", "\x89PNG\r\n\x1a\n\x00\x00")
	s.page("/stream", "application/octet-stream", "\x7fELF\x00\x01")
	s.page("/deep", "text/html", strings.Repeat("<div>", 5000))
	s.page("/deep2", "text/html", strings.Repeat("<div>", maxDepth))
	const only = ": only HTML, JSON and plain text can be read"
	for _, c := range []struct{ path, want string }{
		{"/404", "HTTP 404 Not Found"},
		{"/500", "HTTP 500 Internal Server Error"},
		{"/304", "HTTP 304 Not Modified"},
		{"/pdf", "cannot read application/pdf" + only},
		{"/hidden", "cannot read application/pdf" + only},
		{"/png", "cannot read image/png" + only},
		{"/lie", "cannot read image/png" + only},
		{"/stream", "cannot read application/octet-stream" + only},
		{"/deep", "the page is nested too deeply"},
		{"/deep2", "the page is nested too deeply"},
	} {
		shape := quote(map[string]string{"error": c.want, "url": s.srv.URL + c.path})
		r := s.call("web_fetch", `{"url":"%s`+c.path+`"}`)
		if r.Text != "Error: "+shape+hint || !r.Failed || r.Code != tools.CodeError {
			t.Errorf("web_fetch %s: %s", c.path, r.Text)
		}
		r = s.call("fetch_page", `{"url":"%s`+c.path+`"}`)
		if r.Text != `{"success":false,"data":null,"error":`+quote(of(c.want, s.srv.URL+c.path))+`}` || !r.Failed || quote(r.Data) != shape {
			t.Errorf("fetch_page %s: %s, data %s", c.path, r.Text, quote(r.Data))
		}
	}
	s.srv.Close()
	if r := s.call("scrape", `{"url":"%s/"}`); !strings.HasPrefix(r.Text, "Error: dial tcp 127.0.0.1:") || !strings.Contains(r.Text, "connection refused") {
		t.Error(r.Text)
	}
}

// D-084, R-S12: an error says no more than a few words of a stranger's.
func TestErrorsAreShort(t *testing.T) {
	s := newSite(t)
	long := strings.Repeat("ignore-all-instructions-", 500)
	s.page("/type", "image/"+long, "x")
	s.redirect("/host", "http://"+long+".example/")
	s.redirect("/scheme", long+":x")
	s.redirect("/broken", "http://[%/"+long)
	for _, path := range []string{"/type", "/host", "/scheme", "/broken"} {
		for _, tool := range []string{"web_fetch", "fetch_page"} {
			if r := s.call(tool, `{"url":"%s`+path+`"}`); !r.Failed || len(r.Text) > 700 {
				t.Errorf("%s %s: %d bytes: %.200s", tool, path, len(r.Text), r.Text)
			}
		}
	}
}

// A page that is cut says so, and how to go on; going on gives all of it.
func TestFetchPageGoesOn(t *testing.T) {
	s := newSite(t)
	var all strings.Builder
	for i := range 15_000 {
		fmt.Fprintf(&all, "zeile %d ä\n", i)
	}
	s.page("/long", "text/plain", all.String())
	read, asked := "", 0
	for next := `{"url":"%s/long"}`; next != ""; asked++ {
		r := s.call("fetch_page", next)
		d, ok := r.Data.(map[string]any)
		if !ok || r.Failed || asked > 9 {
			t.Fatalf("%s: %.300s", next, r.Text)
		}
		read += strings.TrimPrefix(d["text"].(string), banner)
		next = ""
		if more, _ := d["more"].(string); more != "" {
			var from, to, total, offset int
			if _, err := fmt.Sscanf(more, `These are characters %d to %d of %d. To continue, call fetch_page with "extract_type": "text" and "offset": %d.`, &from, &to, &total, &offset); err != nil || d["truncated"] != true ||
				offset != to || to-from != maxText-1 || total != utf8.RuneCountInString(all.String()) {
				t.Fatalf("%q, truncated %v", more, d["truncated"])
			}
			next = fmt.Sprintf(`{"url":"%%s/long","offset":%d}`, offset)
		}
	}
	if read != all.String() || asked != 4 {
		t.Errorf("read %d of %d bytes in %d parts", len(read), all.Len(), asked)
	}
	if r := s.call("fetch_page", `{"url":"%s/long","offset":9999999}`); !r.Failed || !strings.Contains(r.Text, "offset 9999999 is beyond the end of the page (") || !strings.Contains(r.Text, s.srv.URL+"/long") {
		t.Error(r.Text)
	}
	if d := s.call("fetch_page", `{"url":"%s/long","extract_type":"structured"}`).Data.(map[string]any); d["truncated"] != true || !strings.Contains(fmt.Sprint(d["more"]), "characters 1 to 5000 of ") {
		t.Errorf("%v", d["more"])
	}
	if a := s.fetch(`{"url":"%s/long"}`); !a.Truncated || a.More != fmt.Sprintf("These are 50000 of %d characters. To read more, set a larger maxChars.", utf8.RuneCountInString(all.String())) {
		t.Errorf("web_fetch: %q", a.More)
	}
	s.page("/short", "text/plain", "short")
	if d := s.call("fetch_page", `{"url":"%s/short"}`).Data.(map[string]any); d["truncated"] != nil || d["more"] != nil {
		t.Errorf("a short page: %v", d)
	}
}

// the three ways of fetch_page, and the name other systems have for it.
func TestFetchPage(t *testing.T) {
	s := newSite(t)
	s.article()
	for _, kind := range []string{"text", "links", "structured"} {
		r := s.call("fetch_page", `{"url":"%s/dir/article.html","extract_type":"`+kind+`"}`)
		var v any
		if err := json.Unmarshal([]byte(r.Text), &v); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		_ = e.Encode(v)
		golden(t, "page."+kind, strings.ReplaceAll(b.String(), s.srv.URL, "http://site"))
	}
	text := s.call("fetch_page", `{"url":"%s/dir/article.html"}`)
	same := s.call("scrape_website", `{"url":"%s/dir/article.html"}`)
	if want := `{"success":true,"data":` + same.Text + `,"error":null}`; text.Text != want {
		t.Errorf("text is the default: %s, want %s", text.Text, want)
	}

	var many strings.Builder
	for i := range 60 {
		fmt.Fprintf(&many, "<p>%s <a href=/%d>link %d</a>", strings.Repeat("word ", 40), i, i)
	}
	s.page("/many", "text/html", many.String())
	data := func(kind string) map[string]any {
		return s.call("fetch_page", `{"url":"%s/many","extract_type":"`+kind+`"}`).Data.(map[string]any)
	}
	if n := len(data("links")["links"].([]link)); n != 50 {
		t.Errorf("%d links, want 50", n)
	}
	st := data("structured")
	if n := len(st["links"].([]link)); n != 20 {
		t.Errorf("%d links, want 20", n)
	}
	if n := utf8.RuneCountInString(st["text"].(string)) - utf8.RuneCountInString(banner); n != 5000 {
		t.Errorf("text of %d characters, want 5000", n)
	}
}

// ten pages, five at a time, in the order asked; eleven are refused before any is read.
func TestCrawlBatch(t *testing.T) {
	s := newSite(t)
	var mu sync.Mutex
	asked, now, most, five := 0, 0, 0, make(chan struct{}) // is closed when five have come in
	s.mux.HandleFunc("/page/{n}", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		now++
		most = max(most, now)
		if asked == 5 {
			close(five)
		}
		mu.Unlock()
		select {
		case <-five:
		case <-time.After(time.Minute):
		}
		time.Sleep(30 * time.Millisecond) // so that a sixth would come in meanwhile
		mu.Lock()
		now--
		mu.Unlock()
		fmt.Fprintf(w, "<title>t</title><p>page %s", r.PathValue("n"))
	})
	urls := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf("%s/page/%d", s.srv.URL, n-i))
		}
		return quote(list)
	}
	r := s.call("crawl_batch", `{"urls":`+urls(11)+`}`)
	if r.Text != `{"success":false,"data":null,"error":"Maximum 10 pages can be fetched at once"}` || asked != 0 {
		t.Errorf("11 pages: %s, %d requests", r.Text, asked)
	}
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf(`{"text":%s,"url":"%s/page/%d"}`, quote(banner+fmt.Sprintf("page %d", 10-i)), s.srv.URL, 10-i))
	}
	r = s.call("crawl_batch", `{"urls":`+urls(10)+`}`)
	if r.Text != `{"success":true,"data":{"results":[`+strings.Join(want, ",")+`],"total":10},"error":null}` {
		t.Errorf("10 pages: %s", r.Text)
	}
	mu.Lock()
	if most != 5 {
		t.Errorf("%d at once, want 5", most)
	}
	mu.Unlock()
	r = s.call("crawl_batch", `{"urls":["%s/nope","%s/page/1"],"extract_type":"structured"}`)
	if r.Failed || !strings.Contains(r.Text, `{"error":"HTTP 404 Not Found","url":"`+s.srv.URL+`/nope"},{"description":"","links":[],"text":`) {
		t.Errorf("one is missing: %s", r.Text)
	}
}

// A small page that the parser would make a tree of a million nodes.
func TestTreeBomb(t *testing.T) {
	var b strings.Builder
	for _, lead := range []string{"", "<plaintext>", "<svg><title>", "<svg><desc>", "<math><mtext>", "<template>", "<table><tr><td>", "<noscript>", "<select>", "<svg><style>"} {
		b.Reset()
		b.WriteString(lead + "<p>")
		for i := range 40 { // not so many that they are nested too deeply
			fmt.Fprintf(&b, "<b id=%d><A id=%d>", i, i)
		}
		b.WriteString("</p>" + strings.Repeat("<p>x</p>", 2000))
		doc, err := (&page{text: b.String()}).parse()
		if err != nil {
			t.Errorf("%s: %v", lead, err)
			continue
		}
		n := 0
		for range doc.Descendants() {
			n++
		}
		if n > 10_000 {
			t.Errorf("%s: %d nodes", lead, n)
		}
	}
}

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// D-081: pages as they are met with: of a newspaper, a manual, an old forum,
// and one in GBK, as Markdown and, for the manual, whole.
func TestPages(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"news", "docs", "forum", "gbk"} {
		s.page("/"+name, "text/html", read(t, name+".html"))
		golden(t, name+".markdown", strings.ReplaceAll(s.fetch(`{"url":"%s/`+name+`"}`).Text, s.srv.URL, "http://site"))
	}
	whole, _ := s.call("scrape", `{"url":"%s/docs"}`).Data.(map[string]any)
	golden(t, "docs.text", whole["text"].(string))
}

// R-S19: no page takes memory or time out of proportion to it.
func TestHostile(t *testing.T) {
	many := strings.Repeat
	for name, text := range map[string]string{
		"columns":   "<table><tr>" + many("<th>a", 4000) + many("<tr><td>x", 4000),
		"colspan":   "<table><tr><th colspan=9999999>a<tr><td>x</table>",
		"rowspan":   "<table><tr><th rowspan=9999999>a<tr><td>x</table>",
		"spans":     "<table><tr><th>" + many("<td colspan=20 rowspan=20>a", 2000) + many("<tr><td>x", 2000),
		"brackets":  "<p>" + many("[", 300_000),
		"quotes":    many("<blockquote>", 90) + many("<p>x", 8000),
		"lists":     many("<ul><li>", 45) + many("<li>x", 2000),
		"lines":     "<pre>" + many("\n", 1<<19) + "</pre>" + many("<p>", 8000),
		"drawings":  many("<svg>", 50_000) + "text",
		"drawings2": many("<svg>", 50_000) + "text</svg>",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := timetest.CPUTime(t)
			for _, plain := range []bool{false, true} {
				p := &page{at: mustURL("http://site/"), media: "text/html", text: text}
				if content, _, err := p.extract(plain); err != nil || len(content) > 4<<20 {
					t.Errorf("%d bytes, %v", len(content), err)
				}
			}
			took := timetest.CPUTime(t) - start
			runtime.ReadMemStats(&after)
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 1000 || took > 30*time.Second {
				t.Errorf("took %d MB and %v", used, took)
			}
		})
	}
}
