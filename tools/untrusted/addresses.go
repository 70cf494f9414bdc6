package untrusted

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"parley/lazyregexp"
)

// Characters that may stand between two words of an address, one at a time.
const (
	nameSeparators = "-_.+,: "
	separators     = nameSeparators + "/=&?"
)

// wordsOfPath returns the words of the path and query of u; ok reports whether
// they contain nothing else but one separator between two words.
func wordsOfPath(u *url.URL) (words []string, ok bool) {
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil || u.RawPath != "" && u.RawPath != u.Path { // an unusual encoding
		return nil, false
	}
	if !isUsualEncoding(u.RawQuery, query) {
		return nil, false
	}
	text := strings.TrimPrefix(strings.TrimSuffix(u.Path, "/"), "/")
	if u.RawQuery != "" {
		text += "?" + query
	}
	words = rawWords(text)
	var between rune // the separator within names, which is always the same
	rest := text
	for i, word := range words {
		gap, after, _ := strings.Cut(rest, word)
		rest = after
		char, size := utf8.DecodeRuneInString(gap)
		switch {
		case gap == "" || i == 0 && gap == "?": // also between two scripts
		case size != len(gap) || !strings.ContainsRune(separators, char):
			return nil, false
		case !strings.ContainsRune(nameSeparators, char):
		case between != 0 && char != between:
			return nil, false
		default:
			between = char
		}
	}
	return words, rest == ""
}

// isUsualEncoding reports whether raw encodes query as programs do, and not in a
// way that was chosen.
func isUsualEncoding(raw, query string) bool {
	if raw == query || strings.ReplaceAll(raw, "+", " ") == query {
		return true
	}
	escaped := strings.NewReplacer("%3D", "=", "%26", "&").Replace(url.QueryEscape(query))
	return escaped == strings.ReplaceAll(raw, "%20", "+")
}

var (
	withScheme = lazyregexp.New(`(?i)https?://[^\s"'<>\\^` + "`" + `{}|\x{3000}-\x{303f}\x{ff00}-\x{ffef}]+`)
	bareDomain = lazyregexp.New(`(?i)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}(?::\d+)?` +
		`(?:/[^\s"'<>\\^` + "`" + `{}|]*)?`)
)

// addressesIn returns the addresses in text, including those without a scheme,
// each as it is written and without what may be punctuation after it.
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

// withoutScheme returns an address found by addressesIn in lower case, without its
// scheme and the slash at its end.
func withoutScheme(address string) string {
	return strings.ToLower(strings.TrimSuffix(address[strings.Index(address, "//")+2:], "/"))
}

// addressKey returns the key of u, which all spellings of an address share.
func addressKey(u *url.URL) string {
	host := strings.ToLower(u.Host)
	host = strings.TrimSuffix(strings.TrimSuffix(host, ":80"), ":443")
	key := host + strings.TrimSuffix(u.EscapedPath(), "/")
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
