// Package untrusted judges what a model wants to do after it read untrusted
// content (R-S12): whether the person's own words ask for it, and whether an
// address, a search or a task may carry off something private.
package untrusted

import (
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
	Spoken  []string    // what was said in the conversation, and its tasks
	Quoted  []string    // what people quoted or forwarded: never the agent's own words, which may hold a secret
	Public  []Published // pages and the results of searches
	Private []string    // memory, files that were read, and the results of other tools
	Told    []string    // summaries of earlier parts of the conversation

	Addressed []string // the addresses in the calls so far, whatever came of them
}

// A Published text is the result of a tool whose Hints say Untrusted.
type Published struct {
	Text   string
	Asked  string   // the query of a search, which Text only repeats
	Opened []string // the addresses of anything else
}

const (
	minEncodedWord = 24 // bytes of a word that is likely to be made of others
	maxSingles     = 5  // letters standing alone in a search: more may spell a word
)

// WordsLeak reports whether a search for text may carry off words of memory or of
// files that were read. Words that somebody said in the conversation, that pages
// have or that common has are fine, and so are those that are in nothing private.
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

// TaskLeaks reports whether a task for a subagent, which may search and open
// pages as it likes, holds an address that leaks, or private words. In a long
// text only words with digits and words written as names count as private.
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

// isEncoded reports whether token is too long for a word of a language that
// puts spaces between words.
func isEncoded(token string) bool { return len(token) >= minEncodedWord && !dense(token) }

// privateWords returns the words of what is private. Of summaries it takes those
// with digits: the others were mostly said by somebody.
func (k Known) privateWords() map[string]bool {
	private := tokensOf(k.Private...)
	for token := range tokensOf(k.Told...) {
		if strings.ContainsFunc(token, unicode.IsDigit) {
			private[token] = true
		}
	}
	return private
}

// privateNames returns the words of what is private that begin with a capital
// letter, and those with a digit, in lower case.
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

// publicWords returns the words of pages and of what searches found, without the
// words that a search was made for: its result repeats them.
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
