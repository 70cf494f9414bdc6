package texts

// Gateway is what the gateway itself says: its commands, and what it tells owners.
type Gateway struct {
	Commands GatewayCommands
	Jobs     Jobs
}

// GatewayCommands says in /help and in menus what each command does.
type GatewayCommands struct {
	Cron string

	NotDone Format // the command was understood and could not be done: why
}

// Jobs is what /cron says of scheduled jobs.
type Jobs struct {
	Usage string

	Created                              Format // name and ID
	Removed, RunsNow                     Format // the ID
	Enabled, Disabled, Changed, NotFound Format // the ID

	CannotEnable, CannotDisable, CannotEdit, CannotRemove Format // a system job: its ID
	OfMemory, OfParley                                    string // why a system job cannot be changed

	None  string
	List  string // above the list
	Title Format // name, ID, schedule
	Line  Format // one of the list: its Title, when it runs next, how it ran last
	In    Format // after Line: the conversation that it belongs to
	More  Format // below the list: how many more

	Off, NotDue string
	OffBecause  Format // why
	Next        Format // the time
	Never       string
	Last        Format // the time, its Outcome
	LastNote    Format // Last, a note

	NoHistory Format // the ID
	History   Format // above the runs: the Title
	Run       Format // the time, its Outcome
	Tokens    Format // after Run: how many
	Cost      Format // after Run: money
	RunNote   Format // after Run: a note

	Every, At Format // schedules: a length of time; a time
	Outcomes  Outcomes
}

// Outcomes are how a run of a job ended, or how far it is.
type Outcomes struct {
	Waiting, Running, Answered, Sending, Delivered, Undelivered, Silent string
	Done, Failed, Interrupted, Stopped, Skipped, Missed, Refused        string
}
