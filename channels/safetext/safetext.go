// Package safetext makes text that anybody wrote safe to show in chats: words without
// markup, and names of people and files.
package safetext

import (
	"parley/chat"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxPersonNameRunes = 64

// WithoutMarkup returns the words of a person as one line that has no markup in
// Markdown.
func WithoutMarkup(text string, maxRunes int) string {
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune("*_`[]<>\\~|", r) {
			return ' '
		}
		return r
	}, text)
	return chat.Shorten(chat.OneLine(plain), maxRunes)
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
