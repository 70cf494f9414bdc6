package tools

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Bounds of what looks like words.
const (
	splitWord   = 6 // characters of a private word that is looked for across the bounds of others
	opaqueWord  = 8 // characters of a word that may be a code …
	opaqueTurns = 3 // … if it changes so often between small and capital letters and digits
	longNumber  = 7 // digits
)

// plainLetters returns text with the plain form of letters that come in several,
// such as ⓐ, 𝐚 and ａ, and without what nobody sees.
func plainLetters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, norm.NFKC.String(text))
}

// isMorse says whether so much of text is neither letters nor digits that it may
// spell something.
func isMorse(text string) bool {
	words, marks, odd := len(rawWords(text)), 0, 0
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), unicode.IsSpace(r):
		case unicode.IsPunct(r) || r < utf8.RuneSelf:
			marks++
		default:
			odd++
		}
	}
	return odd > oddCharacters || marks > 2*words+spelled
}

// isDisguised says whether text holds a private word in another form: cut into
// parts, backwards, or encoded in a usual way; or a word that nobody has said and
// that looks like a code. It cannot find all there are.
func isDisguised(text string, private, given func(token string) bool) bool {
	for _, word := range rawWords(text) {
		if !given(strings.ToLower(word)) && isOpaque(word) {
			return true
		}
	}
	tokens := split(text)
	for from := range tokens { // runs of words that together are one
		whole := ""
		for _, token := range tokens[from:] {
			if whole += token; len(whole) > maxDisguised {
				break
			}
			if whole != token && len(whole) >= splitWord && !dense(whole) && private(whole) {
				return true
			}
		}
	}
	chunks := strings.Fields(text)
	for _, chunk := range append(chunks, strings.Join(chunks, "")) {
		for _, said := range decodings(chunk) {
			if slices.ContainsFunc(split(said), func(token string) bool { return len(token) > 3 && private(token) }) {
				return true
			}
		}
	}
	return false
}

const maxDisguised = 64 // bytes of a private word

// isOpaque says whether word looks like a code rather than a word.
func isOpaque(word string) bool {
	if strings.Trim(word, "0123456789") == "" {
		return len(word) >= longNumber
	}
	turns, was := 0, 0
	for i, r := range word {
		kind := 1
		switch {
		case unicode.IsDigit(r):
			kind = 2
		case unicode.IsUpper(r):
			kind = 3
		}
		if i > 0 && kind != was {
			turns++
		}
		was = kind
	}
	return utf8.RuneCountInString(word) >= opaqueWord && turns >= opaqueTurns
}

// decodings returns what chunk may stand for.
func decodings(chunk string) (all []string) {
	runes := []rune(chunk)
	slices.Reverse(runes)
	all = append(all, string(runes), strings.Map(rot13, chunk))
	bare := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(chunk), "=")
	for _, decode := range []func(string) ([]byte, error){
		base64.RawStdEncoding.DecodeString,
		func(s string) ([]byte, error) {
			return base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(s))
		},
		hex.DecodeString,
	} {
		if data, err := decode(bare); err == nil && len(data) > 3 && utf8.Valid(data) {
			all = append(all, string(data))
		}
	}
	return all
}

func rot13(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z':
		return 'a' + (r-'a'+13)%26
	case r >= 'A' && r <= 'Z':
		return 'A' + (r-'A'+13)%26
	}
	return r
}
