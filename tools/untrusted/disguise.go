package untrusted

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

const (
	minSplitWord     = 6  // bytes of a private word that is searched for across several words
	maxSplitWord     = 64 // maximum of the same
	minDecodedWord   = 4  // bytes of a private word that is searched for in decoded text
	minOpaqueWord    = 8  // characters of a word that may be a code
	minOpaqueChanges = 3  // changes between small letters, capitals and digits in such a word
	minOpaqueNumber  = 7  // digits
	maxOddCharacters = 2  // in a search: symbols that are neither letters nor punctuation
)

// plainLetters returns text with letters such as ⓐ, 𝐚 and ａ in their plain form,
// and without invisible characters.
func plainLetters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, norm.NFKC.String(text))
}

// isMorse reports whether text has so many characters that are neither letters nor
// digits that they could spell something.
func isMorse(text string) bool {
	marks := 0
	odd := 0
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), unicode.IsSpace(r):
		case unicode.IsPunct(r) || r < utf8.RuneSelf:
			marks++
		default:
			odd++
		}
	}
	return odd > maxOddCharacters || marks > 2*len(rawWords(text))+maxSingles
}

// isDisguised reports whether text contains a private word in another form (split,
// reversed, or in a usual encoding), or a word that was not given and looks like a
// code. It cannot detect every disguise.
func isDisguised(text string, isPrivate, isGiven func(token string) bool) bool {
	for _, word := range rawWords(text) {
		if !isGiven(strings.ToLower(word)) && isOpaque(word) {
			return true
		}
	}
	return isSplit(split(text), isPrivate) || isEncodedWord(text, isPrivate)
}

// isSplit reports whether several consecutive tokens make up a private word.
func isSplit(tokens []string, isPrivate func(token string) bool) bool {
	for from := range tokens {
		joined := ""
		for _, token := range tokens[from:] {
			joined += token
			if len(joined) > maxSplitWord {
				break
			}
			if joined != token && len(joined) >= minSplitWord && !dense(joined) && isPrivate(joined) {
				return true
			}
		}
	}
	return false
}

// isEncodedWord reports whether text, or a part of it, decodes to a private word.
func isEncodedWord(text string, isPrivate func(token string) bool) bool {
	chunks := strings.Fields(text)
	for _, chunk := range append(chunks, strings.Join(chunks, "")) {
		for _, decoded := range decodings(chunk) {
			for _, token := range split(decoded) {
				if len(token) >= minDecodedWord && isPrivate(token) {
					return true
				}
			}
		}
	}
	return false
}

// isOpaque reports whether word looks more like a code than like a word.
func isOpaque(word string) bool {
	if strings.Trim(word, "0123456789") == "" {
		return len(word) >= minOpaqueNumber
	}
	changes := 0
	last := noRune
	for _, r := range word {
		class := classOf(r)
		if last != noRune && class != last {
			changes++
		}
		last = class
	}
	return utf8.RuneCountInString(word) >= minOpaqueWord && changes >= minOpaqueChanges
}

type runeClass int

const (
	noRune runeClass = iota
	otherRune
	digitRune
	capitalRune
)

func classOf(r rune) runeClass {
	switch {
	case unicode.IsDigit(r):
		return digitRune
	case unicode.IsUpper(r):
		return capitalRune
	}
	return otherRune
}

// decodings returns what chunk may stand for: itself reversed, and decoded in the
// usual ways.
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
		data, err := decode(bare)
		if err != nil || len(data) <= 3 || !utf8.Valid(data) {
			continue
		}
		all = append(all, string(data))
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
