package channels

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clip returns text with at most so many runes.
func Clip(text string, most int) string {
	if rs := []rune(text); len(rs) > most {
		return string(rs[:most-1]) + "…"
	}
	return text
}

// Line makes one line of at most so many runes of text, without what cannot be
// seen and what turns the direction of the text around.
func Line(text string, most int) string {
	return Clip(strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.IsGraphic(r), r == '\u200d': // which joins families
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))), " "), most)
}

// plainly makes the words of a person fit to stand in a line of Markdown.
func plainly(text string, most int) string {
	return Line(strings.Map(func(r rune) rune {
		if strings.ContainsRune("*_`[]<>\\~|", r) {
			return ' '
		}
		return r
	}, text), most)
}

const maxName = 64 // runes

const (
	maxFileName = 80 // bytes
	maxExt      = 16 // bytes of it that must stay; what is longer is no extension
)

// SafeName makes a file name that anybody chose one that leads nowhere, shows
// as what it is and fits any file system, or "" if nothing of it is left.
func SafeName(name string) string {
	name = strings.ToValidUTF8(name, "")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case strings.ContainsRune("<>:\"|?*`$", r):
			return '_'
		case !unicode.IsPrint(r), unicode.Is(unicode.Variation_Selector, r): // with all marks of direction
			return -1
		}
		return r
	}, name)
	name = strings.Trim(name, ". ")
	ext := path.Ext(name)
	if len(ext) > maxExt {
		ext = ""
	}
	stem := name[:len(name)-len(ext)]
	if most := maxFileName - len(ext); len(stem) > most {
		for !utf8.RuneStart(stem[most]) {
			most--
		}
		stem = strings.TrimRight(stem[:most], ". ")
	}
	return stem + ext
}
