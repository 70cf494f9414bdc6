package web

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"parley/channels/web/filekind"
	"parley/chat"
)

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// upload puts a file and returns it.
func (h *testGateway) upload(t *testing.T, who, name, body string) (f fileLink) {
	t.Helper()
	got := h.must(http.StatusCreated, who, "PUT", "/files?name="+name, strings.NewReader(body))
	if err := json.Unmarshal([]byte(got), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// A file goes up, along with a message, and comes down again.
func TestFiles(t *testing.T) {
	h := newTestGateway(t)
	heard, _ := h.hear(nil)
	f := h.upload(t, "anna", "cat.png", png)
	if f.Name != "cat.png" || f.Type != "image/png" || f.Size != int64(len(png)) {
		t.Errorf("upload: %+v", f)
	}
	h.must(http.StatusAccepted, "anna", "POST", "/c/first/messages", words{"id": "message-1", "files": []string{f.ID}})
	if m := heard()[0]; len(m.Files) != 1 || m.Files[0] != (chat.File{Path: "inbox/1-upload", Name: "cat.png", Type: "image/png", Size: f.Size}) {
		t.Errorf("heard %+v", m)
	}
	h.write("out/report.pdf", "%PDF-1.4")
	r := chat.Reply{ID: "r1", To: h.address("anna", firstID), Text: "here", Files: []chat.File{{Path: "out/report.pdf"}, {Path: "out/gone.txt"}}}
	for range 2 {
		if _, err := h.Send(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	b := h.watch("anna", firstID, "")
	b.shows(t, "", "here\n\n(The file `gone.txt` no longer exists.)")
	es := b.entries()
	for i, want := range []struct{ name, kind, way, body string }{
		{"cat.png", "image/png", "inline", png}, {"report.pdf", "application/pdf", "inline", "%PDF-1.4"},
	} {
		res, body := h.do("anna", "GET", es[i].Files[0].URL, nil)
		if res.StatusCode != http.StatusOK || body != want.body || res.Header.Get("Content-Type") != want.kind ||
			res.Header.Get("Content-Disposition") != want.way+"; filename="+want.name {
			t.Errorf("GET %v = %v %v %q", es[i].Files[0].URL, res.StatusCode, res.Header, body)
		}
	}
	if err := os.Remove(h.work.Dir() + "/out/report.pdf"); err != nil {
		t.Fatal(err)
	}
	h.must(http.StatusNotFound, "anna", "GET", es[1].Files[0].URL, nil)
}

// R-S5 R-S18: nothing in a file acts as a page of ours, whatever it is called.
func TestRS5FilesAreInert(t *testing.T) {
	h := newTestGateway(t)
	for name, body := range map[string]string{
		"x.html": "<script>alert(1)</script>", "x.png": "<html><script>alert(1)</script>", "x.svg": "<svg onload='alert(1)'/>",
		"x.mp3": "<script>alert(1)</script>", "x.mp4": "alert(1)", "y.pdf": "<html>%PDF-1.4", "x.xml": "<?xml version='1.0'?>", "empty": "", "x.js": "alert(1)",
	} {
		res, _ := h.do("anna", "GET", h.upload(t, "anna", name, body).URL, nil)
		if d := res.Header.Get("Content-Disposition"); res.StatusCode != http.StatusOK || !strings.HasPrefix(d, "attachment") ||
			res.Header.Get("Content-Type") != "application/octet-stream" || res.Header.Get("X-Content-Type-Options") != "nosniff" ||
			res.Header.Get("Content-Security-Policy") != "sandbox; default-src 'none'" {
			t.Errorf("%v: %v %v", name, res.StatusCode, res.Header)
		}
	}
}

// What a browser plays, or shows in a frame, is told what it is; a PDF is so only for what is one, and in a sandbox.
func TestFileTypes(t *testing.T) {
	h := newTestGateway(t)
	for _, c := range []struct{ name, body, kind, way, policy string }{
		{"a.pdf", "%PDF-1.4", "application/pdf", "inline", "sandbox; default-src 'none'; frame-ancestors 'self'"},
		{"a.txt", "%PDF-1.4 <script>", "application/pdf", "inline", "sandbox; default-src 'none'; frame-ancestors 'self'"},
		{"b.ogg", "OggS\x00", "audio/ogg", "attachment", "sandbox; default-src 'none'"},
		{"c.mp3", "\xff\xfb\x90\x00", "audio/mpeg", "attachment", "sandbox; default-src 'none'"},
		{"d.bin", "\xff\xfb\x90\x00", "application/octet-stream", "attachment", "sandbox; default-src 'none'"},
		{"e.wav", "RIFF....WAVEfmt ", "audio/wave", "attachment", "sandbox; default-src 'none'"},
	} {
		res, _ := h.do("anna", "GET", h.upload(t, "anna", c.name, c.body).URL, nil)
		got := res.Header
		if got.Get("Content-Type") != c.kind || !strings.HasPrefix(got.Get("Content-Disposition"), c.way) ||
			got.Get("Content-Security-Policy") != c.policy || got.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s is sent as %v", c.name, got)
		}
	}
	for name, kind := range map[string]string{"a.PDF": filekind.PDF, "a.go": filekind.Text, "x.opus": filekind.Audio, "x.mov": filekind.Video, "x.zip": filekind.Other, "x": filekind.Other} {
		if got := (fileLink{Name: name, Type: "application/octet-stream"}).kind(); got != kind {
			t.Errorf("%s is shown as %s", name, got)
		}
	}
}

// File names are shown as what they are, and lead nowhere.
func TestFileNames(t *testing.T) {
	h := newTestGateway(t)
	for _, c := range []struct{ name, want string }{
		{"..%2F..%2Fetc%2Fpasswd", "passwd"}, {"..%5C..%5Cboot.ini", "boot.ini"}, {"..", "file"},
		{"a%00b.txt", "ab.txt"}, {"%E2%80%AEgpj.exe", "gpj.exe"}, {"a%0D%0AX-Evil:+1.txt", "a  X-Evil_ 1.txt"},
		{strings.Repeat("x", 5000) + ".txt", strings.Repeat("x", 76) + ".txt"}, {"%FF%FE.txt", "txt"},
		{"%3Cscript%3E.txt", "_script_.txt"}, {"gr%C3%BCn.txt", "grün.txt"},
	} {
		f := h.upload(t, "anna", c.name, "x")
		if f.Name != c.want {
			t.Errorf("%.40s is called %.120q, want %q", c.name, f.Name, c.want)
		}
		res, body := h.do("anna", "GET", f.URL, nil)
		if res.StatusCode != http.StatusOK || body != "x" || res.Header.Get("X-Evil") != "" {
			t.Errorf("%v: %v", f.URL, res.StatusCode)
		}
	}
}

// A zeros has no end, and counts what is read of it.
type zeros struct{ n atomic.Int64 }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.n.Add(int64(len(p)))
	return len(p), nil
}

// 100 MB are refused before they are read, by their size or at the limit.
func TestUploadTooBig(t *testing.T) {
	var saved, calls atomic.Int64
	h := newTestGateway(t, func(c *Config) {
		c.MaxFile = 1 << 20
		c.Save = func(_ context.Context, _ chat.Address, _ chat.Sender, _ string, r io.Reader) (chat.File, error) {
			calls.Add(1)
			n, err := io.Copy(io.Discard, r)
			saved.Add(n)
			return chat.File{Path: "x", Size: n}, err
		}
	})
	for _, length := range []int64{100 << 20, -1} {
		z := &zeros{}
		req, err := http.NewRequestWithContext(t.Context(), "PUT", h.url+"/files?name=x", io.LimitReader(z, 100<<20))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		req.Header.Set("Who", "anna")
		req.Header.Set("Content-Type", "application/octet-stream")
		res, err := (&http.Transport{}).RoundTrip(req)
		if err != nil {
			t.Logf("length %d: %v", length, err) // the connection may break before the answer is read
			continue
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), "The limit is 1 MB") {
			t.Errorf("length %d: %v %v", length, res.StatusCode, body)
		}
		if n := z.n.Load(); n > 20<<20 {
			t.Errorf("%d bytes were read", n)
		}
	}
	if saved.Load() > 1<<20 || calls.Load() != 1 { // the one whose size was said is not begun
		t.Errorf("%d bytes were saved in %d calls", saved.Load(), calls.Load())
	}
}

// Assets are asked for once, and sent compressed.
func TestAssets(t *testing.T) {
	h := newTestGateway(t)
	for name, folder := range map[string]string{"page.js": "page", "page.css": "page", "icon.svg": "page", "highlight.min.js": "libraries", "temml.LICENSE.txt": "libraries"} {
		path := "/assets/" + h.assets.Digest + "/" + name
		res, got := h.do("anna", "GET", path, nil)
		if want, _ := embedded.ReadFile(folder + "/" + name); !strings.Contains(res.Header.Get("Cache-Control"), "immutable") || got != string(want) || got == "" {
			t.Errorf("%s: %v", path, res.Header)
		}
		if res, _ := h.do("anna", "GET", "/assets/0/"+name, nil); strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("an old %s is kept for ever", name)
		}
		for accepted, coding := range map[string]string{"gzip, br": "gzip", "br;q=1.0, gzip;q=0.8": "gzip", "gzip;q=0": "", "x-gzip": "", "": ""} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
			r.Header.Set("Accept-Encoding", accepted)
			w := httptest.NewRecorder()
			h.Serve(w, r, chat.Sender{ID: "anna"})
			var body io.Reader = w.Body
			if got := w.Header().Get("Content-Encoding"); got != coding || w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s for %q is sent as %q", name, accepted, got)
			}
			if coding != "" {
				var err error
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			if unpacked, err := io.ReadAll(body); err != nil || string(unpacked) != got {
				t.Errorf("%s for %q: %v, %d bytes", name, accepted, err, len(unpacked))
			}
		}
	}
	for _, bad := range []string{"page.html", "..%2fpage.go", "x"} {
		h.must(http.StatusNotFound, "anna", "GET", fmt.Sprintf("/assets/%s/%s", h.assets.Digest, bad), nil)
	}
}

// The libraries are those that SOURCES.txt names, as they were published.
func TestLibraries(t *testing.T) {
	sources, err := embedded.ReadFile("libraries/SOURCES.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{"SOURCES.txt": ""} // sums by name
	last := ""
	for line := range strings.Lines(string(sources)) {
		if file, ok := strings.CutPrefix(line, "file: "); ok {
			last, _, _ = strings.Cut(file, " ")
		}
		if sum, ok := strings.CutPrefix(line, "sha256: "); ok {
			known[last] = strings.TrimSpace(sum)
		}
	}
	files, err := embedded.ReadDir("libraries")
	if err != nil || len(files) != len(known) || len(known) < 5 {
		t.Errorf("there are %v (%v), and SOURCES.txt names %v", files, err, known)
	}
	for name, sum := range known {
		body, err := embedded.ReadFile("libraries/" + name)
		if got := fmt.Sprintf("%x", sha256.Sum256(body)); err != nil || sum != "" && got != sum {
			t.Errorf("%s (%v) has the sum %s, not %s", name, err, got, sum)
		}
	}
}
