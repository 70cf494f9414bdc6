// Package untrusted judges what a model may do after it has read untrusted content
// (R-S12): whether the person's own words ask for a call, and whether an address,
// a search or a task could carry off something private.
package untrusted

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Known is what the model is shown in an untrusted turn, sorted by where it came
// from. It decides what a call may send to the web without approval (R-S12).
// Anything that occurs in none of its texts is the model's own, and may be a
// secret in disguise.
type Known struct {
	Words   []string    // what people wrote themselves in this turn
	Spoken  []string    // what was said in the conversation, and its tasks
	Quoted  []string    // what people quoted or forwarded, except for the agent's own words, which may hold a secret
	Public  []Published // web pages and results of searches
	Private []string    // memory, files that were read, and results of other tools
	Told    []string    // summaries of earlier parts of the conversation

	Addressed []string // the addresses in the calls so far, whatever their results
}

// A Published text is the result of a tool whose Hints say Untrusted.
type Published struct {
	Text   string
	Asked  string   // the query of a search, which Text merely repeats
	Opened []string // the addresses of any other call
}

const (
	minEncodedWord = 24 // bytes of a word that is probably made of several
	maxSingles     = 5  // single letters in a search: more could spell a word
)

// WordsLeak reports whether a search for text may carry off words of memory or of
// files that were read. Words that were said in the conversation, that are on
// pages or that common has are harmless, and so are words that occur in nothing
// private.
func (k Known) WordsLeak(text string, common []string) bool {
	private := k.privateWords()
	public := k.publicWords()
	said := tokensOf(slices.Concat(common, k.Spoken, k.Words)...)
	isSecret := func(token string) bool { return private[token] && !said[token] && !public[token] }
	isGiven := func(token string) bool { return said[token] || public[token] }

	text = plainLetters(text)
	if isDisguised(text, isSecret, isGiven) || isMorse(text) {
		return true
	}
	singles := 0
	for _, token := range split(text) {
		if utf8.RuneCountInString(token) == 1 && !dense(token) {
			singles++
		}
		isNumber := strings.ContainsFunc(token, unicode.IsDigit)
		switch {
		case said[token], public[token] && (!isNumber || isYear(token)):
		case private[token] && (isNumber || dense(token) || len(token) > 2), isEncoded(token):
			return true
		}
	}
	return singles > maxSingles
}

// TaskLeaks reports whether a task for a subagent, which may search and open pages
// freely, contains an address that leaks, or private words. In a text this long,
// only words with digits and capitalized words count as private.
func (k Known) TaskLeaks(text string, common []string) bool {
	text = plainLetters(text)
	if k.AddressesLeak(addressesIn(text)...) {
		return true
	}
	names := k.privateNames()
	public := k.publicWords()
	said := tokensOf(slices.Concat(common, k.Spoken, k.Words)...)
	isGiven := func(token string) bool { return said[token] || public[token] }
	isSecret := func(token string) bool { return names[token] && !isGiven(token) }
	if isDisguised(text, isSecret, isGiven) {
		return true
	}
	return slices.ContainsFunc(split(text), func(token string) bool {
		return isSecret(token) || !isGiven(token) && isEncoded(token)
	})
}

// isEncoded reports whether token is too long for a word in a language with spaces
// between words.
func isEncoded(token string) bool { return len(token) >= minEncodedWord && !dense(token) }

// privateWords returns the words of private texts. Of summaries it only returns
// those with digits, because most others were said by somebody.
func (k Known) privateWords() map[string]bool {
	private := tokensOf(k.Private...)
	for token := range tokensOf(k.Told...) {
		if strings.ContainsFunc(token, unicode.IsDigit) {
			private[token] = true
		}
	}
	return private
}

// privateNames returns, in lower case, the words of private texts that begin with
// a capital letter or have a digit.
func (k Known) privateNames() map[string]bool {
	names := map[string]bool{}
	for _, text := range slices.Concat(k.Private, k.Told) {
		for _, word := range rawWords(text) {
			first, _ := utf8.DecodeRuneInString(word)
			hasDigit := strings.ContainsFunc(word, unicode.IsDigit) && utf8.RuneCountInString(word) > 2
			if unicode.IsUpper(first) || hasDigit {
				names[strings.ToLower(word)] = true
			}
		}
	}
	return names
}

// publicWords returns the words of pages and search results, except for the words
// that a search asked for, because its result repeats them.
func (k Known) publicWords() map[string]bool {
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
