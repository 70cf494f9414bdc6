package tools

import (
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// separators may stand between two words of an address, one at a time.
const separators = "/-_.+=&?,: "

// wordsOfPath returns the words of the path and query of u, and whether nothing
// else is in them than one separator between two.
func wordsOfPath(u *url.URL) (words []string, ok bool) {
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil || u.RawPath != "" && u.RawPath != u.Path { // encoded as nobody would
		return nil, false
	}
	if again := url.QueryEscape(query); u.RawQuery != query && strings.NewReplacer("%3D", "=", "%26", "&").Replace(again) != strings.ReplaceAll(u.RawQuery, "%20", "+") && strings.ReplaceAll(u.RawQuery, "+", " ") != query {
		return nil, false
	}
	text := strings.TrimPrefix(strings.TrimSuffix(u.Path, "/"), "/")
	if u.RawQuery != "" {
		text += "?" + query
	}
	words, between, gap := rawWords(text), rune(0), ""
	rest := text
	for i, word := range words {
		gap, rest, _ = strings.Cut(rest, word)
		char, size := utf8.DecodeRuneInString(gap)
		switch {
		case gap == "" || i == 0 && gap == "?": // also between two scripts
		case size != len(gap) || !strings.ContainsRune(separators, char):
			return nil, false
		case strings.ContainsRune("-_.+,: ", char) && between != 0 && char != between:
			return nil, false
		case strings.ContainsRune("-_.+,: ", char):
			between = char
		}
	}
	return words, rest == ""
}

var (
	withScheme = regexp.MustCompile(`(?i)https?://[^\s"'<>\\^` + "`" + `{}|\x{3000}-\x{303f}\x{ff00}-\x{ffef}]+`)
	bareDomain = regexp.MustCompile(`(?i)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}(?::\d+)?(?:/[^\s"'<>\\^` + "`" + `{}|]*)?`)
)

// addressesIn returns the addresses in text, also those without a scheme, each as
// it stands there and without what may be punctuation behind it.
func addressesIn(text string) (all []string) {
	add := func(found string) {
		all = append(all, found)
		for {
			shorter := strings.TrimRight(found, ".,;:!?*_~")
			if open, shut := strings.Count(shorter, "("), strings.Count(shorter, ")"); shut > open {
				shorter = shorter[:strings.LastIndex(shorter, ")")]
			}
			shorter = strings.TrimSuffix(shorter, "]")
			if shorter == found {
				return
			}
			found = shorter
			all = append(all, found)
		}
	}
	for _, found := range withScheme.FindAllString(text, -1) {
		if head, _, cut := strings.Cut(found, "]("); cut { // [https://a](https://b)
			add(head)
		}
		add(found)
	}
	for _, at := range bareDomain.FindAllStringIndex(text, -1) {
		if at[0] > 0 && strings.ContainsRune("/@.", rune(text[at[0]-1])) {
			continue // a part of an address, or a mailbox
		}
		add("http://" + text[at[0]:at[1]])
	}
	return all
}

// addressKey returns u so that two addresses of the same have the same key.
func addressKey(u *url.URL) string {
	host := strings.ToLower(u.Host)
	host = strings.TrimSuffix(strings.TrimSuffix(host, ":80"), ":443")
	key := host + strings.TrimSuffix(u.EscapedPath(), "/") // their number could say something
	if u.RawQuery != "" {
		key += "?" + u.RawQuery
	}
	return key
}

// Host returns the host of an address, for people.
func Host(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" {
		return "an unclear address"
	}
	return strings.ToLower(u.Host)
}
