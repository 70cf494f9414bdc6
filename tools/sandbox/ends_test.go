package sandbox_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/tools/sandbox"
)

// TestEnds keeps both ends of whatever is written, in whole characters, however it is written (B-048, D-076).
func TestEnds(t *testing.T) {
	const gap = "\n\n... (%s chars truncated) ...\n\n"
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"0123456789", "0123456789"},
		{"0123456789a", "01234" + fmt.Sprintf(gap, "1") + "6789a"},
		{strings.Repeat("é中😀", 4), "é中😀é中" + fmt.Sprintf(gap, "2") + "中😀é中😀"},
		{"é中😀é中😀é中😀é", "é中😀é中😀é中😀é"},
		{"begin" + strings.Repeat("x", 1234567) + "close", "begin" + fmt.Sprintf(gap, "1,234,567") + "close"},
		{"begin" + strings.Repeat("😀", 1000) + "close", "begin" + fmt.Sprintf(gap, "1,000") + "close"},
		{"a\xff\x00b", "a\ufffd\x00b"},
	} {
		for _, size := range []int{1, 3, 7, 64 << 10} {
			e := sandbox.Ends{Max: 10}
			for rest := c.text; rest != ""; {
				n := min(size, len(rest))
				if written, err := e.Write([]byte(rest[:n])); written != n || err != nil {
					t.Fatal(written, err)
				}
				rest = rest[n:]
			}
			if got := e.String(); got != c.want || e.Cut() != strings.Contains(c.want, "truncated") {
				t.Errorf("%.30q by %d bytes: %q, want %q", c.text, size, got, c.want)
			}
		}
		if got := sandbox.ClipEnds(c.text, 10); got != c.want {
			t.Errorf("%.30q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestEndsOfGarbage finds that bytes which are no characters are left out, too, and that this is said.
func TestEndsOfGarbage(t *testing.T) {
	e := sandbox.Ends{Max: 10}
	for range 1000 {
		fmt.Fprint(&e, strings.Repeat("\x80", 1000))
	}
	if got := e.String(); !e.Cut() || len(got) > 100 || !utf8.ValidString(got) || !strings.Contains(got, "truncated") {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
}

// TestAppendEnds counts what one of two streams had left out (B-049).
func TestAppendEnds(t *testing.T) {
	for _, c := range []struct {
		first, second int
		want          string
	}{
		{4, 6, "aaaabbbbbb"},
		{4, 7, "aaaab\n\n... (1 chars truncated) ...\n\nbbbbb"},
		{1000, 2, "aaaaa\n\n... (992 chars truncated) ...\n\naaabb"},
		{1000, 2000, "aaaaa\n\n... (2,990 chars truncated) ...\n\nbbbbb"},
		{2, 2000, "aabbb\n\n... (1,992 chars truncated) ...\n\nbbbbb"},
	} {
		both := sandbox.Ends{Max: 10}
		first := sandbox.Ends{Max: 10}
		second := sandbox.Ends{Max: 10}
		fmt.Fprint(&first, strings.Repeat("a", c.first))
		fmt.Fprint(&second, strings.Repeat("b", c.second))
		both.Append(&first)
		both.Append(&second)
		if got := both.String(); got != c.want {
			t.Errorf("%d and %d: %q, want %q", c.first, c.second, got, c.want)
		}
	}
}
