package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/lazyregexp"
)

// tour is what a person may try next, in this order.
var tour = []string{
	"Remind me in a minute to stretch",
	"Every 10 seconds say hi",
	"Calculate 17% of 240",
	"Write a note: buy milk",
	"List my files",
	"Remember that I like tea",
	"What do you know about me?",
	"In the background list my files",
	"Search the web for bread recipes",
}

const (
	maxSuggestions = 3
	menuText       = "This is what you can try with me; a real model does all of it, in your own words:\n\n" +
		"- **Reminders and jobs**: “remind me in a minute to stretch”, “every 10 seconds say hi”, " +
		"“stop saying hi”\n" +
		"- **Exact sums**: “calculate 17% of 240”\n" +
		"- **Files**: “write a note: buy milk”, “read notes.md”, “list my files”; " +
		"“delete notes.md” asks you first\n" +
		"- **Memory**: “remember that I like tea”, “what do you know about me?”\n" +
		"- **In the background**: “in the background list my files”\n" +
		"- **The web**: “search the web for bread recipes”, “tell me the weather in Oslo”\n\n" +
		"/help lists the commands."
	howToReal = " For a real model, set OPENAI_API_KEY and start Parley again, or name one in " +
		"`models` in config.json: OpenAI, any service with the same protocol, or Ollama on your own machine."
	guestHowToReal = " Whoever runs this Parley can give me a real model."
	unknownText    = "As a demo I understand a few requests only: ask “what can you do?”"
)

// suggestions returns what the person may try next: what they did not try so far.
func (c conversation) suggestions() []string {
	done := strings.Join(c.earlier, "\n") + "\n" + strings.ToLower(c.all)
	var next []string
	for _, u := range c.uses {
		switch name := u.arg("name"); {
		case u.tool == "cron" && u.arg("action") == "add" && strings.Contains(u.args, "every_seconds"):
			next = append(next, "Stop saying "+name)
		case u.tool == "write_file" && u.arg("path") == notes:
			next = append(next, "Read "+notes)
		case u.tool == "read_file" && u.arg("path") == notes:
			next = append(next, "Delete "+notes)
		}
	}
	for _, words := range tour {
		if len(next) < maxSuggestions && !strings.Contains(done, strings.ToLower(words)) {
			next = append(next, words)
		}
	}
	if len(next) < 2 {
		next = append(next, "What can you do?")
	}
	return next
}

// answer returns what is said about the calls of this turn, or about words that ask for
// none. isKnown says that a phrase was understood.
func (c conversation) answer() (text string, isKnown bool) {
	switch {
	case c.from == fromSubagent:
		return report(c.all), false
	case len(c.uses) == 0:
		return c.smallTalk()
	case c.isUntold():
		return c.uses[len(c.uses)-1].arg("text"), false
	case c.hasRawCalls():
		var parts []string
		for _, u := range c.uses {
			parts = append(parts, fmt.Sprintf("%s says:\n%s", u.tool, clip(u.result)))
		}
		return strings.Join(parts, "\n\n"), false
	}
	var parts []string
	for _, u := range c.uses {
		if u.tool == "message" && !u.failed() {
			continue
		}
		if text := c.tell(u); !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return "There it is.", true
	}
	return strings.Join(parts, "\n\n"), true
}

// isUntold reports whether the answer of this turn was given to the tool message, which
// failed. It is then said without buttons.
func (c conversation) isUntold() bool {
	last := c.uses[len(c.uses)-1]
	return c.asked == "" && last.tool == "message" && buttonsOf(last.args) != nil && last.failed()
}

// hasRawCalls reports whether a line of this turn names a tool and its arguments.
func (c conversation) hasRawCalls() bool {
	for line := range strings.Lines(c.all) {
		if callForm.MatchString(strings.TrimSpace(line)) {
			return true
		}
	}
	return false
}

// smallTalk answers words that need no tool.
func (c conversation) smallTalk() (text string, isKnown bool) {
	words := strings.TrimSpace(c.asked)
	switch m := repeatForm.FindStringSubmatch(c.asked); {
	case m != nil:
		return m[1], false
	case words == "":
		return "You said nothing.", false
	case strings.HasPrefix(words, reminder):
		return "⏰ " + strings.TrimPrefix(words, reminder), false
	case c.from == fromSchedule && sayForm.MatchString(words):
		return sayForm.ReplaceAllString(words, ""), false
	case weatherForm.MatchString(words):
		return "The weather of which place? I understand “tell me the weather in Oslo”.", false
	case c.quiet:
		return nothingToSay, false
	case c.from != fromPerson:
		return words, false
	case menuForm.MatchString(words) && c.isOwner():
		return menuText + howToReal, true
	case menuForm.MatchString(words):
		return menuText + guestHowToReal, true
	}
	return "You said: " + c.asked + "\n\n" + unknownText, false
}

var (
	resultForm = lazyregexp.New(`"result":\s*([^,}]+)`)
	reportForm = lazyregexp.New(
		`(?s)^\[Subagent '.*?' ([^\]]*)\]\n\nTask: (.*?)\n\nResult: (.*)\n\nSummarize this .*$`)
	lineForm   = lazyregexp.New(`(?m)^\d+\| `)
	endForm    = lazyregexp.New(`\n*\((?:End of file|Showing) [^\n]*\)\s*$`)
	adviceForm = lazyregexp.New(`(?s)\n*\[Analyze the error.*$`)
)

// report tells how a background task ended.
func report(text string) string {
	m := reportForm.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	return fmt.Sprintf("The background task “%s” %s:\n\n%s", m[2], m[1], m[3])
}

// tell says what came of a call.
func (c conversation) tell(u use) string {
	switch {
	case u.failed() && u.tool == "web_search" && !c.isOwner():
		return "I cannot search the web from here: " + reason(u.result) + "."
	case u.failed() && u.tool == "web_search":
		return "I cannot search the web from here: " + reason(u.result) + ". Parley asks DuckDuckGo, which needs " +
			"the internet and no key; `tools.web.search` in config.json can name Brave, Tavily, SearXNG, Jina or " +
			"Kagi instead."
	case u.failed() && u.tool == "read_file" && u.arg("path") == c.memory:
		return "I know nothing about you yet. Tell me something: “remember that I like tea”."
	case u.failed():
		return "That did not work: " + reason(u.result) + "."
	}
	switch u.tool {
	case "calculator":
		if m := resultForm.FindStringSubmatch(u.result); m != nil {
			return "`" + u.arg("expression") + "` is **" + strings.Trim(m[1], `" `) + "**."
		}
	case "cron":
		return tellJob(u)
	case "write_file":
		if u.arg("path") == c.memory {
			return "I will remember that, in this conversation and in all others: it is in " + c.memory + ", which " +
				"you can read and edit. `/memory` shows it."
		}
		return "It is in **" + u.arg("path") + "**, a file in my folder."
	case "read_file":
		text := endForm.ReplaceAllString(lineForm.ReplaceAllString(u.result, ""), "")
		if u.arg("path") == c.memory {
			return "This is what I remember:\n\n" + clip(text)
		}
		return "This is in **" + u.arg("path") + "**:\n\n" + clip(text)
	case "get_weather":
		return c.tellWeather(u)
	case "list_dir":
		if strings.HasSuffix(u.result, " is empty") {
			return tellEmpty(u.arg("path"))
		}
		return "My folder has:\n\n" + clip(bullets(u.result))
	case "file_delete":
		return "**" + u.arg("path") + "** is gone; `/undo` brings it back."
	case "web_search":
		return "This is what I found:\n\n" + clip(u.result)
	case "spawn":
		return "I am at it in the background, and you will hear from me when it is done. Ask me something else " +
			"meanwhile."
	}
	return clip(u.result)
}

// tellEmpty says that there is nothing in a folder.
func tellEmpty(folder string) string {
	if folder != "." {
		return "**" + folder + "** is empty."
	}
	return "My folder is empty so far. “Write a note: buy milk” makes a first file."
}

// tellWeather says what the weather is, and whether that is true.
func (c conversation) tellWeather(u use) string {
	var said struct {
		Data *struct {
			City, Description     string
			Temperature, Humidity float64
			Simulated             bool
		}
		Error string
	}
	if json.Unmarshal([]byte(u.result), &said) != nil || said.Data == nil {
		return "That did not work: " + cmp.Or(said.Error, reason(u.result)) + "."
	}
	w := said.Data
	text := fmt.Sprintf("%s: %s, %.0f °C, humidity %.0f %%.", w.City, w.Description, w.Temperature, w.Humidity)
	switch {
	case w.Simulated && c.isOwner():
		return text + " That is made up: with `\"weather\": { \"provider\": \"openmeteo\" }` in `tools` " +
			"in config.json it is true."
	case w.Simulated:
		return text + " That is made up."
	}
	return text
}

// tellJob says what became of an order to the scheduler.
func tellJob(u use) string {
	var in struct {
		Every int `json:"every_seconds"`
	}
	_ = json.Unmarshal([]byte(u.args), &in) // without it there is no interval
	switch {
	case u.arg("action") == "remove":
		return "Done: that will not come again."
	case u.arg("action") != "add":
		return clip(u.result)
	case in.Every > 0:
		return "I will, every " + strconv.Itoa(in.Every) + " seconds, even after a restart. “Stop saying " +
			u.arg("name") + "” ends it; /cron shows all jobs."
	case u.arg("at") != "":
		return "I will remind you here, even if Parley is restarted meanwhile. /cron shows all jobs."
	}
	return "It is on the schedule. /cron shows all jobs."
}

// reason returns the first line of an error without its beginning and its full stop.
func reason(result string) string {
	text := adviceForm.ReplaceAllString(strings.TrimPrefix(result, "Error: "), "")
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimRight(first, ".")
}

// bullets makes a list of lines.
func bullets(lines string) string {
	return "- " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n- ")
}

const maxResult = 500 // runes of a tool's result that are repeated

func clip(s string) string {
	if runes := []rune(s); len(runes) > maxResult {
		return string(runes[:maxResult]) + " …"
	}
	return s
}
