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
		{lazyregexp.New(`(?i)^(?:please )?(remind me )?every ` + days + `,? (.+)`), daily},
		{lazyregexp.New(`(?i)^(?:please )?(remind me )?every ` + unitOrAmount + `,? (.+)`), every},
		{lazyregexp.New(`(?i)^(?:please )?` + order + ` every ` + days + `\W*$`), dailyLast},
		{lazyregexp.New(`(?i)^(?:please )?` + order + ` every ` + unitOrAmount + `\W*$`), everyLast},
		{lazyregexp.New(`(?i)^(.*)\b(?:remind me|(?:set|start) an? (?:reminder|timer|alarm))\b(.*)$`), remind},
		{lazyregexp.New(`(?i)^(?:please )?(?:stop|cancel)` +
			`(?: saying| reminding me| the reminder| the job| that| it)*\b(.*)$`),
			stop},
		{lazyregexp.New(`(?i)\b(?:list|show|what are) (?:the |all |my )*(?:scheduled )?(?:jobs|reminders)`),
			list("cron", "action", "list")},
		{lazyregexp.New(`(?i)^(?:please )?remember (?:that |this: ?)?(.+)`), remember},
		{lazyregexp.New(`(?i)\bwhat (?:do|did) you (?:know|remember)(?: about me)?\b`), recall},
		{lazyregexp.New(`(?i)^(?:please )?write (?:me |down )?(?:a |the )?note` +
			`(?: that says|saying|:| to| that)* (.+)`), note},
		{lazyregexp.New(`(?i)\b(?:read|show)(?: me)? my notes\b`), list("read_file", "path", notes)},
		{lazyregexp.New(`(?i)^(?:please )?write (.+) to (?:the file )?` + file), write},
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

// stop ends the scheduled jobs of that name, or of the latest. Several may have it, so those
// that were made here are named by their IDs.
func stop(c conversation, words []string) (calls []call) {
	name := strings.Trim(words[0], " .!?\"“”'")
	if name == "" && len(c.jobs) > 0 {
		name = c.jobs[len(c.jobs)-1].name
	}
	if name == "" {
		return nil
	}
	for _, id := range c.jobsNamed(name) {
		calls = append(calls, callOf("cron", "action", "remove", "job_id", id))
	}
	return calls
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
	if c.from == fromSchedule && (strings.HasPrefix(line, reminder) || sayForm.MatchString(line)) {
		return nil // it is to be said, not to be done
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

	thousandsForm = lazyregexp.New(`\b\d{1,3}(?:,\d{3})+\b`)
	timesForm     = lazyregexp.New(`(?i)\b(?:times|multiplied by)\b|×|(\d) ?x ?(\d)`)

	// sumWords turn what people write into what the calculator reads.
	sumWords = []struct {
		form *lazyregexp.Regexp
		to   string
	}{
		{lazyregexp.New(`(?i)([\d.]+) ?(?:%|percent) of (\d[\d.,]*)`), "$2*$1/100"},
		{lazyregexp.New(`(?i)(?:the )?square root of \(?([\d.]+)\)?`), "sqrt($1)"},
		{lazyregexp.New(`(?i)\bto the power of\b|\^`), "**"},
		{lazyregexp.New(`(?i)\bplus\b`), "+"},
		{lazyregexp.New(`(?i)\bminus\b`), "-"},
		{timesForm, "$1*$2"},
		{timesForm, "$1*$2"}, // a digit between two signs is part of one match only
		{lazyregexp.New(`(?i)\bdivided by\b|÷`), "/"},
	}
)

func calculate(_ conversation, words []string) []call {
	sum := thousandsForm.ReplaceAllStringFunc(words[0], func(number string) string {
		return strings.ReplaceAll(number, ",", "")
	})
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
	days         = `(day|weekday|morning|evening)(?: at ` + clock + `)?`
	order        = `((?:say|remind me|list|show|read|write|calculate|search|look up|send me|tell me)\b.*?)`
)

var (
	delayForm = lazyregexp.New(`(?i)\b(?:in|for|after) ` + amount + unit)
	clockForm = lazyregexp.New(`(?i)\bat ` + clock)
	whatForm  = lazyregexp.New(`(?i)^[\s,:]*(?:please\b)?[\s,:]*(?:to |that |of |about |for )?(.*?)[\s.!?,]*$`)
	everyForm = lazyregexp.New(`(?i)\bevery (?:` + unitOrAmount + `|` + days + `)`)

	sayForm       = lazyregexp.New(`(?i)^say:? `)
	remindForm    = lazyregexp.New(`(?i)^remind me\b`)
	statementForm = lazyregexp.New(`(?i)^(?:i|we|you|he|she|it|they|my|our|your|the|there)\b`)
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

// every makes a job that runs at intervals: words are "remind me" or nothing, a number, a
// unit and what to do.
func every(_ conversation, words []string) []call {
	return repeated(words[0]+words[3], "every_seconds", int(span(words[1], words[2])/time.Second))
}

func everyLast(c conversation, words []string) []call {
	return every(c, []string{"", words[1], words[2], words[0]})
}

// daily makes a job that runs on all days or on weekdays: words are "remind me" or
// nothing, which days, hour, minute, half of the day and what to do.
func daily(_ conversation, words []string) []call {
	hour, minute := 9, 0
	switch {
	case words[2] != "":
		hour, minute = timeOfDay(words[2:5])
	case strings.EqualFold(words[1], "evening"):
		hour = 18
	}
	onDays := "*"
	if strings.EqualFold(words[1], "weekday") {
		onDays = "1-5"
	}
	spec := strings.Join([]string{strconv.Itoa(minute), strconv.Itoa(hour), "* *", onDays}, " ")
	return repeated(words[0]+words[5], "cron_expr", spec)
}

func dailyLast(c conversation, words []string) []call {
	return daily(c, append(append([]string{""}, words[1:]...), words[0]))
}

// repeated makes a job of what, which runs at the times that param says, or none if what
// tells something instead of asking for it.
func repeated(what, param string, times any) []call {
	if statementForm.MatchString(what) {
		return nil
	}
	what = strings.Trim(what, " .!?")
	message := what
	if begin := remindForm.FindString(what); begin != "" {
		what = whatOf(what[len(begin):])
		message = reminder + what
	}
	return []call{callOf("cron", "action", "add", param, times, "message", message, "name", nameOf(what))}
}

// whatOf returns what a person is to be reminded of.
func whatOf(rest string) string {
	what := whatForm.FindStringSubmatch(strings.TrimSpace(rest))[1]
	return cmp.Or(strings.Join(strings.Fields(what), " "), "it is time")
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
	name := sayForm.ReplaceAllString(what, "")
	if r := []rune(name); len(r) > 40 {
		name = string(r[:40])
	}
	return name
}

// reminder begins the task of a job that reminds a person.
const reminder = "Reminder: "

// soonest is the shortest time until a reminder: an earlier one may be in the past before
// the scheduler hears of it.
const soonest = 5 * time.Second

// remind makes a job that runs once: words are what is before the request and behind it.
func remind(c conversation, words []string) []call {
	rest := words[0] + words[1]
	if everyForm.MatchString(rest) {
		return nil
	}
	at := ""
	if m := delayForm.FindStringSubmatch(rest); m != nil {
		due := c.now.Add(max(span(m[1], m[2]), soonest) + time.Second - 1) // rounded up to a second
		at = due.UTC().Format(time.RFC3339)
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
	what := whatOf(rest)
	return []call{callOf("cron", "action", "add", "at", at, "message", reminder+what, "name", nameOf(what))}
}
