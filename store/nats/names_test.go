package nats

import (
	"strings"
	"testing"
)

// A name of any bytes is one token of a subject, and comes back.
func TestToken(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"", "=", "a", "A", "a.b", "a*", ">", " ", "~", "~a", "\x00\xff", "ä", "=3d", strings.Repeat("x.", 90),
	} {
		got := token(name)
		if got == "" || strings.ContainsAny(got, ".*> \t\r\n\x00") || len(got) > maxToken {
			t.Errorf("token(%q) = %q", name, got)
		}
		if back, ok := unescape(got); !isHashed(got) && (back != name || !ok) {
			t.Errorf("unescape(token(%q)) = %q, %v", name, back, ok)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %q", name, other, got)
		}
		seen[got] = name
	}
	if _, ok := unescape("a=f"); ok {
		t.Error("half a byte is a name")
	}
	if long := token(strings.Repeat("x", maxToken+1)); !isHashed(long) || len(long) > maxToken {
		t.Errorf("a long name is %q", long)
	}
}
