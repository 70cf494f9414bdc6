package texts

// Agent is what the agent says by itself, and what its commands answer.
type Agent struct {
	Span      Span
	Help      Help
	Turn      Turn
	Model     Model
	Commands  Commands
	Doing     Doing
	Limits    Limits
	Subagents Subagents
	Steps     Steps
	Speakers  Speakers

	Approvals Approvals
	Why       Why
}

// Why is what /why tells of the calls of an answer.
type Why struct {
	NoAnswer string // there is none yet
	NotFound Format // not among the latest, of this number
	NoCalls  Format // what was answered, when
	Calls    Count  // their number, what was answered, when
	End      string // what a receipt is

	Done, Interrupted, NotMade string
	Failed                     Format // why
	Altered                    string // the result kept is not the one that the receipt is for
	Retried                    string // it found nothing, and the model did not see that
	By, Receipt                Format // who approved it; the digest
}

// Help says in /help and in menus what each command does.
type Help struct {
	Start  string // to who opens a conversation with the bot
	Intro  string // before the list of commands
	Owners string // after it, for owners: commands of the channels, one a line

	New, Stop, Retry, Undo, Search, Why, Status, Approvals, Agents, Verbose string
	Model, Tools, Tool, Context, Usage, Raise, ToolStats, Help              string
}

// Turn is said in the place of an answer, or with one.
type Turn struct {
	Stopped     string // ends an answer that was stopped
	StoppedWith Format // ends one that was stopped with subagents: they, as Subagents.Some says it
	Later       Format // the answer comes by itself: why not now, in the words of Away
	Back        string // before an answer that came later
	Panic       string
	Unreadable  string // the message may have been begun in what is damaged on disk, and is not begun again
	NoNews      string // a model has nothing to say to a person who asked
	ToolFailed  Format // a job's tool: its name, why
	GivenUp     string // the process crashed over the message three times
	TooOld      Count  // messages that waited too long: their number, how long as a Span

	Filtered, FilteredRest string // all of the answer, the rest of it
	TooLong                string // ends an answer that was cut at its length
	NoRoom                 string // the length was used up before a word was said
	NoAnswer, NothingMore  string // twice nothing; twice nothing after some words
	OutOfRounds            Format // the number of rounds (D-048)
}

// Model is why a model gave no answer. The sentence says what to do about it.
type Model struct {
	Auth, Quota, BadRequest, TooLong, Cut, TimedOut, Unreachable string

	RateLimited, Overloaded Format // when to try again, in the words of Soon
	Soon                    Soon

	Away Away

	Stopped, TookTooLong, Unknown string
}

// Away is why a model is out of reach for a while.
type Away struct {
	RateLimited, Overloaded, Cut, TimedOut, Unreachable string
}

// Soon is when something may be tried again: in a minute, in so many, or later.
type Soon struct {
	Minutes Count
	Hour    string
}

// Commands is what commands answer.
type Commands struct {
	Failed  string // a command could not be carried out
	Unknown Format // a command that there is not, with its slash

	UnknownNear Format // the same, and the one that is most like it, without its slash

	New         string
	NothingHere string // /retry: nothing was asked yet
	// CannotGoBack: the message that was changed, or that the conversation was to go on from, is of an earlier
	// conversation, or was removed, or a message waits for its model.
	CannotGoBack string
	JobGone      string // /retry of a job's answer
	NoStop       string

	NoSearch, NotFound, Found string // /search: without words, in vain, above what was found
	NotSearched               string // ends what /search says if a part of the conversation is damaged
	NotKept                   Format // the same if what was said before a day was removed because it was old
	Me                        string // who said what was found

	NoUndo      string // who asks may not change files
	CannotUndo  string // nobody can
	Interrupted string // an undoing may be half done

	Idle               string // /status: nothing is done
	Am                 Format // /status: what is done
	Since              Format // what is done, how long as a Span
	ModelIs            Format // /status: its name
	Up                 Format // /status: how long as a Span, answers under way, messages waiting
	SubagentsWork      Count  // /status
	Untrusted          Format // /status: where the untrusted content came from that is in the conversation
	NotListed          string // dead letters cannot be listed
	DeadMessage        Format // a message, by its key
	DeadMessageRetried Format // the same, if it is tried once more
	AndMore            Format // how many more there are

	ModelHere, ModelUnknown, ModelChosen Format // the model and all there are; all there are; the model

	Usage       string // above the tokens used
	UsageOf     Format // a model, tokens in, from the cache, out
	UsageCost   Format // after it: what that cost
	UsageNone   string
	StepsHidden string // /verbose alone
	StepsShown  string
	StepsHide   string // /verbose off
	StepsShow   string

	NoTools    string
	OtherName  Format // the tool that a name stands for
	NotCounted string // nobody counts what tools do
	ForOwners  string // who asks is none
	ToolUsage  string // /tool without a name

	ContextModel    Format // its name, its window, tokens of an answer
	ContextNext     Format // tokens of a request, of instructions, of tools, of conversation
	ContextMessages Format // their number, results left out, pictures
	ContextSummary  Format // tokens of the summary
}

// Doing is what a conversation is at, for /status.
type Doing struct {
	Thinking, Fetching, Summing, Archiving, Forgetting, Suspending string

	Answer    string // waiting for a person's answer
	Subagents string // waiting for subagents
	Turn      string // a subagent that waits for its turn

	Using, Command Format // a tool's name; a command's, without its slash
}

// Limits is what is said of the limits of a day (R-S15).
type Limits struct {
	Reached Format // whose, how much of what, time zone, the name for /raise
	Low     Format // percent, whose, how much of what
	NoRaise string // who asks is no owner
	NoSuch  string // nothing was raised
	Share   Format // spent, limit, of what

	ShareCost Format // spent, limit
	Today     Format // above what is spent: time zone
	Raised    Format // above what was raised: time zone
	You       string
	Group     string
	Session   string
	Job       string
	Everyone  string

	// What is limited.
	Answers, Requests, Tokens, Subagents, Megabytes string
}

// Subagents is what is said of the background tasks that subagents do.
type Subagents struct {
	Some    Count  // how many
	Usage   string // of /agents
	Unknown string
	Several string // that an ID may mean
	None    string
	List    string // above the list
	Named   Format // one, as its label and ID
	One     Format // the subagent so named
	More    Format // subagents, as Some says it, and their names
	Began   Format // what it is at, how long ago it began as a Span
	Steps   Count  // done
	For     Format // another conversation, by its name
	NotAll  string // not all could be stopped

	NotTold     string // above the list of those whose reports did not arrive
	Undelivered Format // one of them: its ID, its label, how long ago it ended as a Span, why

	// What was done with subagents, as One and More name them.
	Stopped, Paused, Resumed, Told Format
}

// Speakers are who speaks in a conversation when no person does.
type Speakers struct {
	Schedule string // a job whose time has come
	Agent    string // to a subagent
	Subagent string // reports
}

// Approvals is what /approvals says.
type Approvals struct {
	None, Usage, NotOwner, Revoked string
	List, End                      string // above and below the list

	UntilNew string
	Until    Format // a time of day
}
