package demo

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/lazyregexp"
)

// A phrase is a request in plain words. Its calls are made from the groups of its form;
// there are none if the words do not make sense after all.
type phrase struct {
	form  *lazyregexp.Regexp
	calls func(c conversation, words []string) []call
}

const (
	amount = `(\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty|thirty|half an) ?`
	unit   = `(s|m|h|sec|second|min|minute|hour|day|week)s?\b`
	file   = `([^\s,;]*\.[^\s,;]*[^\s,;.!?])`
)

var (
	repeatForm = lazyregexp.New(`(?s)\brepeat: (.*)`)
	callForm   = lazyregexp.New(`^call ([A-Za-z0-9_-]+)(?: (\{.*\}))?$`)

	menuForm = lazyregexp.New(`(?i)\bwhat (?:all )?(?:can|could|do) you do\b|\bwhat are you (?:good )?for\b|` +
		`\bhow (?:do|can) i use you\b|` +
		`^\W*(?:help|menu|start|examples?|hi|hello|hey|good (?:morning|evening|day))\W*(?:there|parley)?\W*$`)

	// phrases are tried in this order.
	phrases = []phrase{
		{lazyregexp.New(`(?i)^(?:please )?in the background[,:]? (.+)`), inBackground},
		{lazyregexp.New(`(?i)^(.+?),? in the background\W*$`), inBackground},
		{lazyregexp.New(`(?i)^(?:please )?every (day|weekday|morning|evening)(?: at ` + clock + `)?,? (.+)`), daily},
		{lazyregexp.New(`(?i)^(?:please )?every ` + unitOrAmount + `,? (.+)`), every},
		{lazyregexp.New(`(?i)^(?:please )?(.+?) every ` + unitOrAmount + `\W*$`), everyLast},
		{lazyregexp.New(`(?i)^(.*)\b(?:remind me|(?:set|start) an? (?:reminder|timer|alarm))\b(.*)$`), remind},
		{lazyregexp.New(`(?i)^(?:please )?(?:stop|cancel)` +
			`(?: saying| reminding me| the reminder| the job| that| it)*\b(.*)$`),
			stop},
		{lazyregexp.New(`(?i)\b(?:list|show|what are) (?:the |all |my )*(?:scheduled )?(?:jobs|reminders)`),
			list("cron", "action", "list")},
		{lazyregexp.New(`(?i)^(?:please )?remember (?:that |this: ?)?(.+)`), remember},
		{lazyregexp.New(`(?i)\bwhat (?:do|did) you (?:know|remember)(?: about me)?\b`), recall},
		{lazyregexp.New(`(?i)\bwrite (?:me |down )?(?:a |the )?note(?: that says|saying|:| to| that)* (.+)`), note},
		{lazyregexp.New(`(?i)\b(?:read|show)(?: me)? my notes\b`), list("read_file", "path", notes)},
		{lazyregexp.New(`(?i)\bwrite (.+) to (?:the file )?([^\s,;]*[^\s,;.!?])`), write},
		{lazyregexp.New(`(?i)\b(?:read|show)(?: me)? (?:the file )?` + file), with("read_file", "path")},
		{lazyregexp.New(`(?i)^(?:please )?delete (?:the file )?` + file), with("file_delete", "path")},
		{lazyregexp.New(`(?i)\blist (?:the |all |my )*(?:files|directory|folder)(?: in ([^\s,;]*[^\s,;.!?]))?`),
			with("list_dir", "path")},
		{lazyregexp.New(`(?i)^(?:please )?(?:search(?: the web| the internet)?(?: for)?|look up|google)` +
			`[: ]+(.+?)[?.!]*$`),
			with("web_search", "query")},
		{lazyregexp.New(`(?i)^(?:please )?(?:calculate|compute|work out)[: ]+(.+?)[?.!]*$`), calculate},
		{lazyregexp.New(`(?i)^(?:what(?:'s| is)|how much is) (.*\d.*?)[?.!]*$`), calculate},
		{lazyregexp.New(`(?i)^([\d(][\d\s.,+*/^()×÷-]*[\d)])\s*=?\s*[?]?$`), calculate},
		{lazyregexp.New(`(?i)\bsend me (?:a|the) message(?: saying)?:? (.+)`), with("message", "text")},
	}
)

// notes is the file of what is noted without a name.
const notes = "notes.md"

// with returns calls of tool with the words as the values of params.
func with(tool string, params ...string) func(conversation, []string) []call {
	return func(_ conversation, words []string) []call {
		var args []any
		for i, param := range params {
			args = append(args, param, cmp.Or(words[i], ".")) // a missing path is the current folder
		}
		return []call{callOf(tool, args...)}
	}
}

// list returns a call that does not depend on the words.
func list(tool string, args ...any) func(conversation, []string) []call {
	return func(conversation, []string) []call { return []call{callOf(tool, args...)} }
}

func write(_ conversation, words []string) []call {
	return []call{callOf("write_file", "content", words[0], "path", words[1])}
}

func note(_ conversation, words []string) []call {
	return []call{callOf("write_file", "path", notes, "content", "- "+words[0]+"\n", "mode", "append")}
}

func remember(c conversation, words []string) []call {
	return []call{callOf("write_file", "path", c.memory, "content", "- "+words[0]+"\n", "mode", "append")}
}

func recall(c conversation, _ []string) []call {
	return []call{callOf("read_file", "path", c.memory)}
}

func inBackground(_ conversation, words []string) []call {
	return []call{callOf("spawn", "task", words[0])}
}

// stop ends the scheduled job of that name, or the latest.
func stop(c conversation, words []string) []call {
	name := strings.Trim(words[0], " .!?\"“”'")
	if name == "" && len(c.jobs) > 0 {
		name = c.jobs[len(c.jobs)-1]
	}
	if name == "" {
		return nil
	}
	return []call{callOf("cron", "action", "remove", "job_id", name)}
}

// wanted returns the calls that the latest words ask for. missing is a tool among them
// that is not on offer.
func (c conversation) wanted() (calls []call, missing string) {
	if c.from == fromSubagent || repeatForm.MatchString(c.asked) {
		return nil, ""
	}
	for line := range strings.Lines(c.asked) {
		for _, wanted := range c.callsFor(strings.TrimSpace(line)) {
			if !c.offers(wanted.tool) && c.offers("call_tool") {
				wanted = call{"call_tool", `{"name":"` + wanted.tool + `","arguments":` + wanted.args + `}`}
			}
			if !c.offers(wanted.tool) {
				missing = wanted.tool
			}
			calls = append(calls, wanted)
		}
	}
	return calls, missing
}

// callsFor returns the calls that a line asks for.
func (c conversation) callsFor(line string) []call {
	if m := callForm.FindStringSubmatch(line); m != nil {
		return []call{{m[1], cmp.Or(m[2], "{}")}}
	}
	for _, p := range phrases {
		if m := p.form.FindStringSubmatch(line); m != nil {
			if calls := p.calls(c, m[1:]); len(calls) > 0 {
				return calls
			}
		}
	}
	return nil
}

// --- sums

var (
	sumForm  = lazyregexp.New(`(?i)^[\d\s.+*/%()-]*\d[\d\s.+*/%()-]*$`)
	funcForm = lazyregexp.New(`(?i)\b(?:sqrt|sin|cos|tan|log|log10|exp|abs|round|floor|ceil|factorial|pi|e)\b`)

	// sumWords turn what people write into what the calculator reads.
	sumWords = []struct {
		form *lazyregexp.Regexp
		to   string
	}{
		{lazyregexp.New(`(?i)([\d.]+) ?(?:%|percent) of (\d[\d.,]*)`), "$2*$1/100"},
		{lazyregexp.New(`(?i)(?:the )?square root of \(?([\d.]+)\)?`), "sqrt($1)"},
		{lazyregexp.New(`(?i)(\d),(\d{3})\b`), "$1$2"},
		{lazyregexp.New(`(?i)\bto the power of\b|\^`), "**"},
		{lazyregexp.New(`(?i)\bplus\b`), "+"},
		{lazyregexp.New(`(?i)\bminus\b`), "-"},
		{lazyregexp.New(`(?i)\b(?:times|multiplied by)\b|×|(\d) ?x ?(\d)`), "$1*$2"},
		{lazyregexp.New(`(?i)\bdivided by\b|÷`), "/"},
	}
)

func calculate(_ conversation, words []string) []call {
	sum := words[0]
	for _, w := range sumWords {
		sum = w.form.ReplaceAllString(sum, w.to)
	}
	if !sumForm.MatchString(funcForm.ReplaceAllString(sum, "1")) {
		return nil
	}
	return []call{callOf("calculator", "expression", strings.TrimSpace(sum))}
}

// --- times

const (
	unitOrAmount = `(?:` + amount + `)?` + unit
	clock        = `(\d{1,2})(?:[:.](\d\d))? ?(am|pm|o'clock)?`
)

var (
	delayForm = lazyregexp.New(`(?i)\b(?:in|for|after) ` + amount + unit)
	clockForm = lazyregexp.New(`(?i)\bat ` + clock)
	whatForm  = lazyregexp.New(`(?i)^[\s,:]*(?:please\b)?[\s,:]*(?:to |that |of |about |for )?(.*?)[\s.!?,]*$`)
)

var numbers = []string{"", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}

// span returns the time that a number and a unit name; half an hour is the only part.
func span(number, unit string) time.Duration {
	units := map[string]time.Duration{
		"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	}
	one := units[strings.ToLower(unit[:1])]
	number = strings.ToLower(number)
	n, err := strconv.Atoi(number)
	tens := map[string]int{"fifteen": 15, "twenty": 20, "thirty": 30}
	switch {
	case err == nil:
	case number == "half an":
		return one / 2
	case tens[number] > 0:
		n = tens[number]
	default:
		n = max(1, slices.Index(numbers, number))
	}
	return time.Duration(n) * one
}

// every makes a job that runs at intervals: words are a number, a unit and what to do.
func every(_ conversation, words []string) []call {
	what := strings.Trim(words[2], " .!?")
	return []call{callOf("cron", "action", "add", "every_seconds", int(span(words[0], words[1])/time.Second),
		"message", what, "name", nameOf(what))}
}

func everyLast(c conversation, words []string) []call {
	return every(c, []string{words[1], words[2], words[0]})
}

// daily makes a job that runs on all days or on weekdays: words are which, hour, minute,
// half of the day and what to do.
func daily(_ conversation, words []string) []call {
	hour, minute := 9, 0
	switch {
	case words[1] != "":
		hour, minute = timeOfDay(words[1:4])
	case strings.EqualFold(words[0], "evening"):
		hour = 18
	}
	days := "*"
	if strings.EqualFold(words[0], "weekday") {
		days = "1-5"
	}
	what := strings.Trim(words[4], " .!?")
	spec := strings.Join([]string{strconv.Itoa(minute), strconv.Itoa(hour), "* *", days}, " ")
	return []call{callOf("cron", "action", "add", "cron_expr", spec, "message", what, "name", nameOf(what))}
}

// timeOfDay returns the time that an hour, minutes and a half of the day name.
func timeOfDay(words []string) (hour, minute int) {
	hour, _ = strconv.Atoi(words[0]) // digits
	minute, _ = strconv.Atoi(words[1])
	switch strings.ToLower(words[2]) {
	case "pm":
		hour = hour%12 + 12
	case "am":
		hour %= 12
	}
	return hour, minute
}

// nameOf returns the name of a job that says or does what.
func nameOf(what string) string {
	name := lazyregexp.New(`(?i)^say:? `).ReplaceAllString(what, "")
	if r := []rune(name); len(r) > 40 {
		name = string(r[:40])
	}
	return name
}

// reminder begins the task of a job that reminds a person.
const reminder = "Reminder: "

// remind makes a job that runs once: words are what is before the request and behind it.
func remind(c conversation, words []string) []call {
	rest := words[0] + words[1]
	at := ""
	if m := delayForm.FindStringSubmatch(rest); m != nil {
		at = c.now.Add(span(m[1], m[2])).UTC().Format(time.RFC3339)
		rest = strings.Replace(rest, m[0], "", 1)
	} else if m := clockForm.FindStringSubmatch(rest); m != nil {
		hour, minute := timeOfDay(m[1:])
		due := time.Date(c.time.Year(), c.time.Month(), c.time.Day(), hour, minute, 0, 0, time.UTC)
		if strings.Contains(rest, "tomorrow") || !due.After(c.time) {
			due = due.AddDate(0, 0, 1)
		}
		at = due.Format("2006-01-02T15:04:05") // on the clock of people
		rest = strings.Replace(strings.Replace(rest, m[0], "", 1), "tomorrow", "", 1)
	}
	if at == "" {
		return nil
	}
	what := whatForm.FindStringSubmatch(strings.TrimSpace(rest))[1]
	what = cmp.Or(strings.Join(strings.Fields(what), " "), "it is time")
	return []call{callOf("cron", "action", "add", "at", at, "message", reminder+what, "name", nameOf(what))}
}
