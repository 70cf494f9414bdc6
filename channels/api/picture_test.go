package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// Pictures leave a request on its way in, and nothing else does, however it is
// written and cut into pieces.
func TestSpool(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("pixels?>", 5000)
	coded := base64.StdEncoding.EncodeToString([]byte(png))
	escaped := strings.ReplaceAll(coded, "/", `\/`)
	lines := coded[:76] + `\r\n` + coded[76:]
	for name, c := range map[string]struct {
		in       string
		pictures []string // "!": one that cannot be read
	}{
		"none":              {`{"messages":[{"content":"data:image/png;base64,` + coded[:8] + `"}]}`, nil},
		"one":               {`{"url":"data:image/png;base64,` + coded + `"}`, []string{png}},
		"spaces":            {`{ "url" :` + "\n\t" + ` "data:image/png;base64,` + coded + `" }`, []string{png}},
		"two":               {`[{"url":"data:image/png;base64,` + coded + `"},{"url":"data:image/gif;base64,R0lGODlh"}]`, []string{png, "GIF89a"}},
		"slashes escaped":   {`{"url":"data:image\/png;base64,` + escaped + `"}`, []string{png}},
		"plus escaped":      {`{"url":"data:image/png;base64,` + strings.ReplaceAll(coded, "+", `\u002b`) + `"}`, []string{png}},
		"lines":             {`{"url":"data:image/png;base64,` + lines + `"}`, []string{png}},
		"empty":             {`{"url":"data:image/png;base64,"}`, []string{""}},
		"no base64":         {`{"url":"data:image/png;base64,!!!"}`, []string{"!"}},
		"cut off":           {`{"url":"data:image/png;base64,` + coded[:13] + `"}`, []string{"!"}},
		"an address":        {`{"url":"https://example.com/a.png"}`, nil},
		"a key":             {`{"data:image/png;base64,AAAA":"url"}`, nil},
		"text with url":     {`{"content":"url","x":"\"url\":\"data:image/png;base64,AAAA\""}`, nil},
		"url in the list":   {`["url","data:image/png;base64,AAAA"]`, nil},
		"a reference":       {`{"url":"data:parley-picture,0,"}`, nil},
		"nothing":           {``, nil},
		"backslash at last": {`{"a":"\\","url":"data:image/gif;base64,R0lGODlh"}`, []string{"GIF89a"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
				s := newSpool(in, t.TempDir())
				defer s.close()
				out, err := io.ReadAll(s)
				if err != nil {
					t.Fatal(err)
				}
				if c.pictures == nil && string(out) != c.in {
					t.Errorf("got %.200s", out)
				}
				if len(out) > 300*(1+len(c.pictures)) {
					t.Errorf("%d bytes are left", len(out))
				}
				if len(c.in) > 0 && !json.Valid(out) {
					t.Errorf("no JSON: %.300s", out)
				}
				if len(s.pictures) != len(c.pictures) {
					t.Fatalf("%d pictures, want %d", len(s.pictures), len(c.pictures))
				}
				for i, want := range c.pictures {
					p := s.pictures[i]
					got, err := io.ReadAll(p.data)
					if want == "!" && p.err == nil || want != "!" && (p.err != nil || string(got) != want || err != nil) {
						t.Errorf("picture %d: %d bytes, %v, %v", i, len(got), p.err, err)
					}
				}
			}
		})
	}
}

// A request that ends in the middle of a picture is no request.
func TestSpoolCutOff(t *testing.T) {
	for _, in := range []string{`{"url":"data:image/png;base64,AAAA`, `{"url":"data:image/png;base64,AAAA\`, `{"url":"data:image/png;base64,AAAA\u00`} {
		s := newSpool(strings.NewReader(in), t.TempDir())
		if err := json.NewDecoder(s).Decode(new(any)); err == nil {
			t.Errorf("%s is read", in)
		}
		s.close()
	}
}

// FuzzSpool: what has no picture in it comes out as it went in, and what was
// JSON is JSON.
func FuzzSpool(f *testing.F) {
	f.Add([]byte(`{"url":"data:image/png;base64,AAAA"}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":"\"url\":\"data:,x\""}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := newSpool(bytes.NewReader(in), t.TempDir())
		defer s.close()
		out, err := io.ReadAll(s)
		if json.Valid(in) && (err != nil || !json.Valid(out)) {
			t.Errorf("%q became %q, %v", in, out, err)
		}
		if err == nil && len(s.pictures) == 0 && !bytes.Equal(in, out) {
			t.Errorf("%q became %q", in, out)
		}
	})
}
