package nats

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxToken is how long a name may be as a part of a subject, in bytes. A server closes the connection of whoever sends
// a line of more than 4096, and a subject has up to three names.
const maxToken = 256

// token returns name as a part of a subject. Letters, digits and a few signs stand for themselves, other bytes are =
// and two hexadecimal digits, and a lone = is the empty name. A long name becomes its SHA-256 after a ~, and whoever
// wants it back finds it in a header of the message.
func token(name string) string {
	t := escape(name)
	if len(t) <= maxToken {
		return t
	}
	sum := sha256.Sum256([]byte(name))
	return "~" + hex.EncodeToString(sum[:])
}

// escape returns name as token does, however long it is.
func escape(name string) string {
	if name == "" {
		return "="
	}
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_/:,+", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('=')
			b.WriteString(hex.EncodeToString([]byte{c}))
		}
	}
	return b.String()
}

// unescape returns the name that escape made t of. It reports false if it cannot have made it.
func unescape(t string) (name string, ok bool) {
	if t == "=" {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		if t[i] != '=' {
			b.WriteByte(t[i])
			continue
		}
		if i+2 >= len(t) {
			return "", false
		}
		c, err := hex.DecodeString(t[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b.Write(c)
		i += 2
	}
	return b.String(), true
}

// isHashed reports whether a token is not the name itself.
func isHashed(t string) bool { return strings.HasPrefix(t, "~") }
