package tools

import (
	"net"
	"net/url"
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

	Addressed []string // the addresses in the calls so far, whatever came of them
}

// A Published text is the result of a tool whose Hints say Untrusted.
type Published struct {
	Text   string
	Asked  string   // of a search: what it was for, which Text only repeats
	Opened []string // of others: the addresses
}

// Bounds of what is told unasked.
const (
	choicesOfOne  = 4  // in one address that the model made up
	choicesInAll  = 12 // in all of them in the conversation
	openedOfHost  = 40 // addresses of one host in the conversation: to open one link and not another tells something, too
	encoded       = 24 // characters of a word that is likely to be made of others
	spelled       = 5  // letters standing alone: more may spell a word
	ownLabels     = 2  // of a host
	oddCharacters = 2  // in a search: symbols that are neither letters nor punctuation
)

// AddressesLeak reports whether to open addresses may carry off what no page, search
// or person gave the model. An address that stands in what they gave is fine, or
// that was opened before. Of any other, the host must be one that was given, or
// of the person's own words in this turn; and path and query must be words with
// one separator between two: of the person's own words in this turn, in the order
// in which they stand there, and, but for a few, of pages and not of what is private.
// Whatever else can be chosen, such as capital letters, dashes or how a letter is
// encoded, can spell a secret.
func (k Known) AddressesLeak(addresses ...string) bool {
	r := k.references()
	opened, all := map[string]bool{}, 0
	perHost := map[string]int{}
	count := func(address string) (choices int, ok bool) {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil || u.Host == "" || u.User != nil {
			return 0, false
		}
		if choices, ok = r.choices(u); !opened[address] {
			opened[address] = true
			perHost[strings.ToLower(u.Host)]++
			all += min(choices, choicesOfOne)
		}
		return choices, ok && choices <= choicesOfOne && perHost[strings.ToLower(u.Host)] <= openedOfHost
	}
	for _, address := range k.Addressed {
		count(address)
	}
	for _, address := range addresses {
		choices, ok := count(address)
		if !r.openedBefore(address) && (!ok || choices > 0 && all > choicesInAll) {
			return true
		}
	}
	return false
}

// references are what addresses are judged by.
type references struct {
	given, hosts    map[string]bool // by the keys of addresses; hosts in lower case
	before          map[string]bool // keys of addresses that were opened
	typed           []string        // the person's own words, in order
	public, private map[string]bool
	spellings       map[string]bool // of words that were given
}

func (k Known) references() references {
	r := references{before: map[string]bool{}, public: k.published(), private: tokensOf(k.Private...), spellings: map[string]bool{}}
	r.given, r.hosts = k.addresses()
	for _, text := range k.Words {
		r.typed = append(r.typed, split(text)...)
		r.spell(text)
	}
	for _, p := range k.Public {
		r.spell(plainJSON(p.Text))
		for _, address := range p.Opened {
			if u, err := url.Parse(strings.TrimSpace(address)); err == nil {
				r.before[addressKey(u)] = true
			}
		}
	}
	return r
}

func (r references) spell(text string) {
	for _, word := range rawWords(text) {
		r.spellings[word] = true
	}
}

// openedBefore says whether an address was opened: to do so again tells nothing.
func (r references) openedBefore(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	return err == nil && u.User == nil && u.Host == strings.ToLower(u.Host) && r.before[addressKey(u)]
}

// choices returns how many words were chosen to make the address u of what was
// given; not ok means that it holds something else.
func (r references) choices(u *url.URL) (n int, ok bool) {
	if u.Host != strings.ToLower(u.Host) && !r.hosts[u.Host] {
		return 0, false
	}
	if r.given[addressKey(u)] {
		return 0, true
	}
	if host := strings.ToLower(u.Host); !r.hosts[host] && !r.hosts["www."+host] && !r.hosts[strings.TrimPrefix(host, "www.")] && !r.ownHost(u) {
		return 0, false
	}
	words, ok := wordsOfPath(u)
	if !ok {
		return 0, false
	}
	next := -1 // in typed, behind the word before
	for _, word := range words {
		lower := strings.ToLower(word)
		first, size := utf8.DecodeRuneInString(lower)
		if word != lower && word != string(unicode.ToUpper(first))+lower[size:] && !r.spellings[word] {
			return 0, false
		}
		for _, token := range split(word) {
			at := slices.Index(r.typed, token)
			switch {
			case next >= 0 && next < len(r.typed) && r.typed[next] == token:
				next++
			case at >= 0:
				if next >= 0 { // it goes on somewhere else
					n++
				}
				next = at + 1
			case !r.public[token] || r.private[token] || len(token) >= encoded:
				return 0, false
			case utf8.RuneCountInString(token) == 1 && !dense(token):
				n += 2 // of such any word can be spelled
			default:
				n++
			}
		}
	}
	return n, true
}

// sites are labels that any host may have before or behind its name.
var sites = strings.Fields("www m en de fr es it pt nl pl ru zh ja ko co com org net ac gov edu")

// ownHost says whether the labels of a host are the person's words, but for its
// top level and what says as little as www does.
func (r references) ownHost(u *url.URL) bool {
	if u.Port() != "" || net.ParseIP(u.Hostname()) != nil {
		return false
	}
	labels := strings.Split(strings.ToLower(u.Hostname()), ".")
	top := labels[len(labels)-1]
	own := 0
	for _, label := range labels[:len(labels)-1] {
		switch {
		case slices.Contains(r.typed, label):
			own++
		case !slices.Contains(sites, label):
			return false
		}
	}
	return own > 0 && own <= ownLabels && len(labels) <= own+3 && !strings.ContainsFunc(top, unicode.IsDigit)
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
	text = plainLetters(text)
	if isDisguised(text, func(token string) bool { return private[token] && !fine[token] && !public[token] }, func(token string) bool { return fine[token] || public[token] }) || isMorse(text) {
		return true
	}
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
	text = plainLetters(text)
	if k.AddressesLeak(addressesIn(text)...) {
		return true
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
	if isDisguised(text, func(token string) bool { return names[token] && !fine[token] && !public[token] }, func(token string) bool { return fine[token] || public[token] }) {
		return true
	}
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
	add := func(text, except string, opened map[string]bool) {
		for _, found := range addressesIn(text) {
			u, err := url.Parse(found)
			if err != nil || u.Host == "" || except != "" && strings.Contains(except, strings.ToLower(strings.TrimSuffix(found[strings.Index(found, "//")+2:], "/"))) {
				continue
			}
			hosts[strings.ToLower(u.Host)], hosts[u.Host] = true, true
			if key := addressKey(u); !opened[key] {
				given[key] = true
			}
		}
	}
	for _, text := range slices.Concat(k.Words, k.Spoken, k.Quoted) {
		add(text, "", nil)
	}
	for _, p := range k.Public {
		opened := map[string]bool{} // a page does not give its own address, which may have been made up
		for _, address := range p.Opened {
			if u, err := url.Parse(strings.TrimSpace(address)); err == nil && u.Host != "" {
				opened[addressKey(u)], hosts[strings.ToLower(u.Host)] = true, true
			}
		}
		add(plainJSON(p.Text), strings.ToLower(p.Asked), opened)
	}
	return given, hosts
}
