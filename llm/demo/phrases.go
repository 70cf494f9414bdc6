package demo

import (
	"cmp"
	"strings"
	"time"

	"parley/lazyregexp"
	"parley/when"
)

// A phrase is a request in plain words. Its calls are made from the groups of its form;
// there are none if the words do not make sense after all.
type phrase struct {
	form  *lazyregexp.Regexp
	calls func(c conversation, words []string) []call
}

const file = `([^\s,;]*\.[^\s,;]*[^\s,;.!?])`

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
		{lazyregexp.New(`(?i)^(?:please )?(.+)$`), scheduled},
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
		{lazyregexp.New(weatherWords + ` (?:in|for) (.+?)` + weatherEnd),
			with("get_weather", "city")},
		{lazyregexp.New(`(?i)^(?:please )?(?:search(?: the web| the internet)?(?: for)?|look up|google)` +
			`[: ]+(.+?)[?.!]*$`),
			with("web_search", "query")},
		{lazyregexp.New(`(?i)^(?:please )?(?:calculate|compute|work out)[: ]+(.+?)[?.!]*$`), calculate},
		{lazyregexp.New(`(?i)^(?:what(?:'s| is)|how much is) (.*\d.*?)[?.!]*$`), calculate},
		{lazyregexp.New(`(?i)^([\d(][\d\s.,+*/^()×÷-]*[\d)])\s*=?\s*[?]?$`), calculate},
		{lazyregexp.New(`(?i)\bsend me (?:a|the) message(?: saying)?:? (.+)`), with("message", "text")},
	}
)

// How people ask for the weather, somewhere or without saying where.
const (
	weatherWords = `(?i)^(?:please )?(?:tell me |show me |(?:what|how)(?:'s| is) )(?:about )?the weather(?: like)?`
	weatherEnd   = `(?: today| now| please)*[?.!]*$`
)

var weatherForm = lazyregexp.New(weatherWords + weatherEnd)

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

var (
	whatForm = lazyregexp.New(`(?i)^[\s,:]*(?:please\b)?[\s,:]*(?:to |that |of |about |for )?(.*?)[\s.!?,]*$`)

	sayForm       = lazyregexp.New(`(?i)^say:? `)
	remindForm    = lazyregexp.New(`(?i)\b(?:remind me|(?:set|start) an? (?:reminder|timer|alarm))\b`)
	timerForm     = lazyregexp.New(`(?i)\b(timer|alarm) for\b`)
	dailyForm     = lazyregexp.New(`(?i)\bevery (?:week)?day\b`)
	statementForm = lazyregexp.New(`(?i)^(?:i|we|you|he|she|it|they|my|our|your|the|there)\b`)
	orderForm     = lazyregexp.New(`(?i)^(?:say|remind me|list|show|read|write|calculate|search|look up|` +
		`send me|tell me)\b`)
)

// scheduled makes a job of words that say what is to be done and when. What is done again
// and again is said behind the times, or is an order before them.
func scheduled(c conversation, words []string) []call {
	line := timerForm.ReplaceAllString(words[0], "$1 in")
	s, before, after, ok := when.Find(line, c.time)
	if !ok {
		line = dailyForm.ReplaceAllString(line, "$0 at 9")
		s, before, after, ok = when.Find(line, c.time)
	}
	before = strings.TrimSpace(before)
	after = strings.TrimLeft(after, " ,:")
	if strings.EqualFold(before, "remind me") {
		after = before + " " + after
		before = ""
	}
	what := cmp.Or(before, after)
	switch {
	case !ok:
		return nil
	case s.At != "":
		return remind(c, s, before+" "+after)
	case before != "" && (strings.Trim(after, " .!?") != "" || !orderForm.MatchString(before)):
		return nil
	case s.Cron != "":
		return repeated(what, "cron_expr", s.Cron)
	}
	return repeated(what, "every_seconds", int(s.Every/time.Second))
}

// repeated makes a job of what, which runs at the times that param says, or none if what
// tells something instead of asking for it.
func repeated(what, param string, times any) []call {
	if statementForm.MatchString(what) {
		return nil
	}
	what = strings.Trim(what, " .!?")
	message := what
	if begin := remindForm.FindStringIndex(what); begin != nil && begin[0] == 0 {
		what = whatOf(what[begin[1]:])
		message = reminder + what
	}
	return []call{callOf("cron", "action", "add", param, times, "message", message, "name", nameOf(what))}
}

// whatOf returns what a person is to be reminded of.
func whatOf(rest string) string {
	what := whatForm.FindStringSubmatch(strings.TrimSpace(rest))[1]
	return cmp.Or(strings.Join(strings.Fields(what), " "), "it is time")
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

// remind makes a job that runs once, if the words ask for a reminder. A time with an
// offset is counted from now: what people wrote says the minute only.
func remind(c conversation, s when.Schedule, words string) []call {
	begin := remindForm.FindStringIndex(words)
	if begin == nil {
		return nil
	}
	at := s.At
	due, err := time.Parse(time.RFC3339, at)
	if onClock := err != nil; !onClock {
		due = c.now.Add(max(due.Sub(c.time), soonest) + time.Second - 1) // rounded up to a second
		at = due.UTC().Format(time.RFC3339)
	}
	what := whatOf(words[:begin[0]] + " " + words[begin[1]:])
	return []call{callOf("cron", "action", "add", "at", at, "message", reminder+what, "name", nameOf(what))}
}
