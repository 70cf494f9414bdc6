package tools

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Known is what the model is shown in an untrusted turn, by where it came from:
// it decides what a call may tell the web without being asked for (R-S12). What
// is in none of its texts is the model's own, and may be a secret in disguise.
type Known struct {
	Words   []string    // what people said in this turn themselves
	Spoken  []string    // what was said in the conversation, and the tasks that it has
	Quoted  []string    // what people quoted or passed on of others: never the agent's own words, which may hold a secret
	Public  []Published // pages and the results of searches
	Private []string    // memory, files that were read, and the results of other tools
	Told    []string    // summaries of what was said before
}

// A Published text is the result of a tool whose Hints say Untrusted.
type Published struct {
	Text   string
	Asked  string   // of a search: what it was for, which Text only repeats
	Opened []string // of others: the addresses
}

// Bounds of addresses that are made of known words.
const (
	fromPages  = 4  // words of a path and query that only pages have
	longestTag = 3  // letters of a label of a host that any address may have, such as www, en and com
	encoded    = 24 // characters of a word that is likely to be made of others
	spelled    = 5  // letters standing alone: more may spell a word
)

// AddressLeaks reports whether to open address may carry off what no page, search
// or person gave the model. An address that stands in what they gave is fine, or
// that was opened before. Of any other, the host must be one that was given, or
// of the person's own words in this turn; and each word of its path and query
// must be of the person's own words in this turn, or, but for a few, of pages and
// not of what is private.
func (k Known) AddressLeaks(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" || u.User != nil {
		return true
	}
	given, hosts := k.addresses()
	if given[addressKey(u)] {
		return false
	}
	mine := tokensOf(k.Words...)
	if host := strings.ToLower(u.Host); !hosts[host] && !hosts["www."+host] && !hosts[strings.TrimPrefix(host, "www.")] && !ownHost(u, mine) {
		return true
	}
	public, private := k.published(), tokensOf(k.Private...)
	foreign := 0
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil {
		return true
	}
	for _, token := range split(u.Path + " " + query) {
		switch {
		case mine[token]:
		case !public[token] || private[token] || len(token) >= encoded:
			return true
		default:
			foreign++
		}
	}
	return foreign > fromPages
}

// ownHost says whether each label of a host is one of the person's words, or says
// as little as www and com do.
func ownHost(u *url.URL, mine map[string]bool) bool {
	if u.Port() != "" || net.ParseIP(u.Hostname()) != nil {
		return false
	}
	labels, own := strings.Split(strings.ToLower(u.Hostname()), "."), 0
	for _, label := range labels {
		switch {
		case mine[label]:
			own++
		case len(label) > longestTag || strings.ContainsFunc(label, unicode.IsDigit):
			return false
		}
	}
	return own > 0 && len(labels)-own <= 2
}

// WordsLeak reports whether to search for text may carry off words of memory or of
// files that were read. Words that somebody said in the conversation, that pages
// have or that common has are fine, and so are those that are in nothing private.
func (k Known) WordsLeak(text string, common []string) bool {
	private, fine := k.privateWords(), tokensOf(append(slices.Clone(common), k.Spoken...)...)
	for token := range tokensOf(k.Words...) {
		fine[token] = true
	}
	public, alone := k.published(), 0
	for _, token := range split(text) {
		if utf8.RuneCountInString(token) == 1 && !dense(token) {
			alone++
		}
		number := strings.ContainsFunc(token, unicode.IsDigit)
		switch {
		case fine[token] || public[token] && (!number || isYear(token)):
		case private[token] && (number || dense(token) || len(token) > 2), len(token) >= encoded && !dense(token):
			return true
		}
	}
	return alone > spelled
}

// TaskLeaks reports whether a task for a subagent, which may search and open
// pages as it likes, holds an address that leaks, or private words: of a long
// text only those count that have digits or are written as names are.
func (k Known) TaskLeaks(text string, common []string) bool {
	for _, found := range addressesIn(text) {
		if k.AddressLeaks(found) {
			return true
		}
	}
	fine := tokensOf(append(append(slices.Clone(common), k.Spoken...), k.Words...)...)
	names := map[string]bool{}
	for _, s := range append(slices.Clone(k.Private), k.Told...) {
		for _, word := range rawWords(s) {
			r, _ := utf8.DecodeRuneInString(word)
			if unicode.IsUpper(r) || strings.ContainsFunc(word, unicode.IsDigit) && utf8.RuneCountInString(word) > 2 {
				names[strings.ToLower(word)] = true
			}
		}
	}
	public := k.published()
	return slices.ContainsFunc(split(text), func(token string) bool {
		return !fine[token] && !public[token] && (names[token] || len(token) >= encoded && !dense(token))
	})
}

// Descriptions returns those of the tools there are: their words are in every
// prompt, and nobody's secret.
func (s Scope) Descriptions() (all []string) {
	if s.Tools == nil {
		return nil
	}
	for _, t := range s.Tools() {
		all = append(all, t.Description)
	}
	return all
}

// privateWords returns the words of what is private, and of summaries those with
// digits: the others were mostly said by somebody.
func (k Known) privateWords() map[string]bool {
	private := tokensOf(k.Private...)
	for token := range tokensOf(k.Told...) {
		if strings.ContainsFunc(token, unicode.IsDigit) {
			private[token] = true
		}
	}
	return private
}

// published returns the words of pages and of what searches found, without those
// that a search was made for: its result repeats them.
func (k Known) published() map[string]bool {
	all := map[string]bool{}
	for _, p := range k.Public {
		asked := tokensOf(p.Asked)
		for token := range tokensOf(plainJSON(p.Text)) {
			if !asked[token] {
				all[token] = true
			}
		}
	}
	return all
}

// addresses returns the addresses that were given, by their keys, and their hosts.
func (k Known) addresses() (given, hosts map[string]bool) {
	given, hosts = map[string]bool{}, map[string]bool{}
	add := func(text, except string) {
		for _, found := range addressesIn(text) {
			u, err := url.Parse(found)
			if err != nil || u.Host == "" || except != "" && strings.Contains(except, strings.ToLower(strings.TrimSuffix(found[strings.Index(found, "//")+2:], "/"))) {
				continue
			}
			given[addressKey(u)], hosts[strings.ToLower(u.Host)] = true, true
		}
	}
	for _, text := range slices.Concat(k.Words, k.Spoken, k.Quoted) {
		add(text, "")
	}
	for _, p := range k.Public {
		add(plainJSON(p.Text), strings.ToLower(p.Asked))
		add(strings.Join(p.Opened, "\n"), "")
	}
	return given, hosts
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
	key := host + strings.TrimRight(u.EscapedPath(), "/")
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

// plainJSON returns text without the marks that JSON puts before others.
func plainJSON(text string) string {
	return strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">", `\n`, "\n", `\r`, "\n", `\t`, "\t", `\"`, `"`, `\/`, "/").Replace(text)
}

// tokensOf returns the words of texts.
func tokensOf(texts ...string) map[string]bool {
	all := map[string]bool{}
	for _, text := range texts {
		for _, token := range split(text) {
			all[token] = true
		}
	}
	return all
}

// split returns the words of text in lower case: letters and digits between what
// is none; of scripts without spaces, each two letters that follow each other.
func split(text string) (all []string) {
	for _, word := range rawWords(text) {
		runes := []rune(strings.ToLower(word))
		if !dense(word) || len(runes) < 2 {
			all = append(all, string(runes))
			continue
		}
		for i := range len(runes) - 1 {
			all = append(all, string(runes[i:i+2]))
		}
	}
	return all
}

// rawWords returns the words of text as they are written; letters of scripts
// without spaces are apart from others.
func rawWords(text string) (all []string) {
	start, was := -1, false
	for i, r := range text {
		is := isDense(r)
		inWord := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
		if start >= 0 && (!inWord || is != was) {
			all, start = append(all, text[start:i]), -1
		}
		if inWord && start < 0 {
			start, was = i, is
		}
	}
	if start >= 0 {
		all = append(all, text[start:])
	}
	return all
}

// isDense says whether r is of a script that puts no spaces between words.
func isDense(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

func dense(word string) bool { return strings.ContainsFunc(word, isDense) }

// isYear says whether token is one of the years that people talk about.
func isYear(token string) bool {
	return len(token) == 4 && (strings.HasPrefix(token, "19") || strings.HasPrefix(token, "20")) && strings.Trim(token, "0123456789") == ""
}
