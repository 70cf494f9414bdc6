package untrusted

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits for addresses that may be opened without approval.
const (
	maxChoices          = 4  // in one address that the model made up
	maxChoicesInAll     = 12 // in all such addresses of the conversation
	maxAddressesPerHost = 40 // in the conversation, because the choice of links carries information too
	maxOwnLabels        = 2  // of a host
	maxOtherLabels      = 3
	choicesOfSingleRune = 2 // because single letters can spell any word
)

// AddressesLeak reports whether opening addresses may carry off anything that the
// model did not get from a page, a search or a person. An address that occurs in
// what they gave is harmless, and so is one that was opened before. For any other
// address, the host must have been given, or consist of the person's own words in
// this turn. Its path and query must be words with one separator in between: the
// person's own words in this turn, in the same order, and a few words of pages
// that are not private. Everything else that can be chosen, such as capital
// letters, dashes or the encoding of a letter, could spell a secret.
func (k Known) AddressesLeak(addresses ...string) bool {
	r := k.references()
	counts := choiceCount{references: &r, opened: map[string]bool{}, perHost: map[string]int{}}
	for _, address := range k.Addressed {
		counts.add(address)
	}
	for _, address := range addresses {
		choices, ok := counts.add(address)
		if !r.openedBefore(address) && (!ok || choices > 0 && counts.total > maxChoicesInAll) {
			return true
		}
	}
	return false
}

// A choiceCount counts the choices in all addresses of a conversation.
type choiceCount struct {
	references *references
	opened     map[string]bool
	perHost    map[string]int
	total      int
}

// add counts address and returns its choices. ok is false if it holds something
// that was not given, or too many choices.
func (c *choiceCount) add(address string) (choices int, ok bool) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" || u.User != nil {
		return 0, false
	}
	host := strings.ToLower(u.Host)
	choices, ok = c.references.choices(u)
	if !c.opened[address] {
		c.opened[address] = true
		c.perHost[host]++
		c.total += min(choices, maxChoices)
	}
	return choices, ok && choices <= maxChoices && c.perHost[host] <= maxAddressesPerHost
}

// references are what addresses are compared with.
type references struct {
	given     map[string]bool // keys of addresses
	hosts     map[string]bool // as they were given, and in lower case
	opened    map[string]bool // keys of addresses that were opened
	typed     []string        // the person's own words, in order
	public    map[string]bool
	private   map[string]bool
	spellings map[string]bool // of words that were given
}

func (k Known) references() references {
	r := references{
		given:     map[string]bool{},
		hosts:     map[string]bool{},
		opened:    map[string]bool{},
		public:    k.publicWords(),
		private:   tokensOf(k.Private...),
		spellings: map[string]bool{},
	}
	for _, text := range slices.Concat(k.Words, k.Spoken, k.Quoted) {
		r.addGiven(text, "", nil)
	}
	for _, text := range k.Words {
		r.typed = append(r.typed, split(text)...)
		r.addSpellings(text)
	}
	for _, p := range k.Public {
		r.addPublished(p)
	}
	return r
}

// addPublished adds the words of p and the addresses in it. A page does not count
// as the source of its own address, which may have been made up.
func (r *references) addPublished(p Published) {
	text := plainJSON(p.Text)
	r.addSpellings(text)
	opened := map[string]bool{}
	for _, address := range p.Opened {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil {
			continue
		}
		r.opened[addressKey(u)] = true
		if u.Host != "" {
			opened[addressKey(u)] = true
			r.hosts[strings.ToLower(u.Host)] = true
		}
	}
	r.addGiven(text, strings.ToLower(p.Asked), opened)
}

// addGiven adds the addresses in text, except those that occur in asked, the query
// of a search. For addresses in opened it only adds the host.
func (r *references) addGiven(text, asked string, opened map[string]bool) {
	for _, found := range addressesIn(text) {
		u, err := url.Parse(found)
		if err != nil || u.Host == "" || asked != "" && strings.Contains(asked, withoutScheme(found)) {
			continue
		}
		r.hosts[u.Host] = true
		r.hosts[strings.ToLower(u.Host)] = true
		if key := addressKey(u); !opened[key] {
			r.given[key] = true
		}
	}
}

// addSpellings adds the words of text as they are written.
func (r *references) addSpellings(text string) {
	for _, word := range rawWords(text) {
		r.spellings[word] = true
	}
}

// openedBefore reports whether address was opened before: opening it again reveals
// nothing.
func (r *references) openedBefore(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	return err == nil && u.User == nil && u.Host == strings.ToLower(u.Host) && r.opened[addressKey(u)]
}

// choices returns how many choices were made to build u from what was given. ok is
// false if u holds anything else.
func (r *references) choices(u *url.URL) (n int, ok bool) {
	if u.Host != strings.ToLower(u.Host) && !r.hosts[u.Host] {
		return 0, false
	}
	if r.given[addressKey(u)] {
		return 0, true
	}
	if !r.knowsHost(u) {
		return 0, false
	}
	words, ok := wordsOfPath(u)
	if !ok {
		return 0, false
	}
	next := -1 // index in typed of the word after the last of the person's words
	for _, word := range words {
		if !r.isUsualSpelling(word) {
			return 0, false
		}
		for _, token := range split(word) {
			at := slices.Index(r.typed, token)
			switch {
			case next >= 0 && next < len(r.typed) && r.typed[next] == token:
				next++
			case at >= 0:
				if next >= 0 { // it continues at another place in what they typed
					n++
				}
				next = at + 1
			case !r.public[token] || r.private[token] || len(token) >= minEncodedWord:
				return 0, false
			case utf8.RuneCountInString(token) == 1 && !dense(token):
				n += choicesOfSingleRune
			default:
				n++
			}
		}
	}
	return n, true
}

// isUsualSpelling reports whether word is in lower case, capitalized, or written
// as it was given.
func (r *references) isUsualSpelling(word string) bool {
	lower := strings.ToLower(word)
	first, size := utf8.DecodeRuneInString(lower)
	return word == lower || word == string(unicode.ToUpper(first))+lower[size:] || r.spellings[word]
}

// knowsHost reports whether the host of u was given, with or without www, or
// consists of the person's own words.
func (r *references) knowsHost(u *url.URL) bool {
	host := strings.ToLower(u.Host)
	return r.hosts[host] || r.hosts["www."+host] || r.hosts[strings.TrimPrefix(host, "www.")] || r.isOwnHost(u)
}

// commonLabels are labels that any host may have before or after its name.
var commonLabels = strings.Fields("www m en de fr es it pt nl pl ru zh ja ko co com org net ac gov edu")

// isOwnHost reports whether the labels of a host are the person's words, apart
// from the top level and common labels.
func (r *references) isOwnHost(u *url.URL) bool {
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
		case !slices.Contains(commonLabels, label):
			return false
		}
	}
	if strings.ContainsFunc(top, unicode.IsDigit) {
		return false
	}
	return own > 0 && own <= maxOwnLabels && len(labels) <= own+maxOtherLabels
}
