package demo

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/lazyregexp"
	"parley/llm"
)

// titleInstructions begin the instructions of a request for the title of a conversation.
const titleInstructions = "You name conversations."

const maxTitleWords = 6

var (
	askedForm  = lazyregexp.New(`(?m)^The person:\n> (.*)$`)
	politeForm = lazyregexp.New(`(?i)^(?:(?:please|hi|hello|hey|(?:can|could|would) you|` +
		`i(?: would|'d) like you to)[,!]?\s+)+`)
)

// A titlePhrase says what a request is called: $1 is what the first group of form has found.
type titlePhrase struct {
	form  *lazyregexp.Regexp
	title string
}

var titlePhrases = []titlePhrase{
	{lazyregexp.New(`(?i)^remind me .*?\bto (.+)$`), "Reminder: $1"},
	{lazyregexp.New(`(?i)^(every .+?),? say (.+)$`), "Saying $2 $1"},
	{lazyregexp.New(`(?i)^(?:calculate|compute) (.+)$`), "Calculating $1"},
	{lazyregexp.New(`(?i)^write a note:? (.+)$`), "Note: $1"},
	{lazyregexp.New(`(?i)^remember that (.+)$`), "To remember: $1"},
	{lazyregexp.New(`(?i)^search (?:the web )?(?:for )?(.+)$`), "Search: $1"},
	{lazyregexp.New(`(?i)^list my files$`), "My files"},
	{lazyregexp.New(`(?i)^what can you do$`), "What the demo can do"},
	{lazyregexp.New(`(?i)^what do you know about me$`), "What it knows about me"},
}

// title returns a title for the conversation that req shows the beginning of, as a real model would: what was asked,
// in a few words.
func title(req llm.Request) string {
	var said string
	for _, m := range req.Messages {
		said += m.Text + "\n"
	}
	asked := "A file"
	if m := askedForm.FindStringSubmatch(said); m != nil {
		asked = strings.TrimRight(politeForm.ReplaceAllString(m[1], ""), " .!?")
	}
	for _, p := range titlePhrases {
		if p.form.MatchString(asked) {
			asked = strings.ReplaceAll(p.form.ReplaceAllString(asked, p.title), " Every ", " every ")
			break
		}
	}
	words := strings.Fields(asked)
	asked = strings.Join(words[:min(len(words), maxTitleWords)], " ")
	first, size := utf8.DecodeRuneInString(asked)
	return string(unicode.ToUpper(first)) + asked[size:]
}
