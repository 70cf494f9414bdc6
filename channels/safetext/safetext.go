// Package safetext makes text that anybody wrote safe to show: lines, words without
// markup, and names of people and files.
package safetext

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxPersonNameRunes = 64
	zeroWidthJoiner    = '\u200d'
)

// Clip returns text, cut to at most so many runes.
func Clip(text string, maxRunes int) string {
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes-1]) + "…"
	}
	return text
}

// Line returns text as one line of at most so many runes, without characters that
// cannot be seen or that reverse the direction of writing.
func Line(text string, maxRunes int) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.IsGraphic(r), r == zeroWidthJoiner: // which makes one emoji of several
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
	return Clip(strings.Join(strings.Fields(visible), " "), maxRunes)
}

// WithoutMarkup returns the words of a person as one line that has no markup in
// Markdown.
func WithoutMarkup(text string, maxRunes int) string {
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune("*_`[]<>\\~|", r) {
			return ' '
		}
		return r
	}, text)
	return Line(plain, maxRunes)
}

// PersonName returns a safe form of a name that an unknown sender chose (R-S11).
func PersonName(name string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .'-", r) {
			return r
		}
		return -1
	}, name))
	return string(runes[:min(len(runes), maxPersonNameRunes)])
}

const (
	maxFileNameBytes  = 80
	maxExtensionBytes = 16 // what is longer is no extension
)

// FileName returns a safe form of a file name that anybody chose: it has no folders,
// hides nothing, and fits any file system. It is "" if nothing is left of the name.
func FileName(name string) string {
	name = strings.ToValidUTF8(name, "")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case strings.ContainsRune("<>:\"|?*`$", r):
			return '_'
		case !unicode.IsPrint(r), unicode.Is(unicode.Variation_Selector, r): // among them all marks of direction
			return -1
		}
		return r
	}, name)
	name = strings.Trim(name, ". ")
	ext := path.Ext(name)
	if len(ext) > maxExtensionBytes {
		ext = ""
	}
	stem := name[:len(name)-len(ext)]
	if end := maxFileNameBytes - len(ext); len(stem) > end {
		for !utf8.RuneStart(stem[end]) {
			end--
		}
		stem = strings.TrimRight(stem[:end], ". ")
	}
	return stem + ext
}
