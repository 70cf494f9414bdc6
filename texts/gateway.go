package texts

// Gateway is what the gateway itself says: its commands, and what it tells owners.
type Gateway struct {
	Commands  GatewayCommands
	Coding    Coding
	Jobs      Jobs
	Dream     Dream
	Heartbeat Heartbeat
	Tools     ToolUse
	Undo      Undo
	Report    Report
	Owners    OwnerNotices
}

// GatewayCommands says in /help and in menus what each command does.
type GatewayCommands struct {
	Code, Cron, Memory, Remember, Forget, Dream, Skills, Groups, MCP, Trust string

	NotDone Format // the command was understood and could not be done: why
}

// Coding is what /code says, with which people write to their coding sessions.
type Coding struct {
	Usage  Format // how many messages wait for the session; its name
	Nobody string // this person has no coding sessions, or this is a group
	Full   string // too many messages wait
	Passed Format // the name of the session, which waits for messages
	Kept   Format // the name of the session, which does not
	Reply  Format // what a session says: its name, the text
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
	Accepted  Format // in place of the Outcome of an answer that was delivered: when

	Every, At Format // schedules: a length of time; a time
	Outcomes  Outcomes
}

// Outcomes are how a run of a job ended, or how far it is.
type Outcomes struct {
	Waiting, Running, Answered, Sending, Delivered, Undelivered, Silent string
	Done, Failed, Interrupted, Stopped, Skipped, Missed, Refused        string
}

// Dream is what /dream says of going over memory.
type Dream struct {
	Usage    string
	NotOwner string
	Off      string // the config has no time for it
	Begun    string
	Proposed Format // to owners: the files that it would change, in the words of And; the ID of the change
	Note     Format // how it went, in the words of Parts and Changes
	Summed   Format // how it went: how much of conversations was summed up, the Note
	Parts    Count  // of conversations that were read
	Changes  Count  // of memory
	And      Format // all of a list but the last, with commas between them; the last one
}

// Heartbeat is why a heartbeat did nothing.
type Heartbeat struct {
	NothingToDo Format // the file that lists what is to be done
	NoOwner     string // there is no owner to whom it could speak
}

// ToolUse is what /toolstats says.
type ToolUse struct {
	None, List                            string
	Tool                                  Format // one: name, runs, failures, milliseconds on average
	Cached, Skipped, Repeated, RolledBack Format // after Tool: how many
	Unreliable                            Format // below the list: names
}

// Undo is what /undo says.
type Undo struct {
	Nothing string
	Done    string // above the list

	Restored, Removed, AsBefore Format // what came of a file or folder: its name
	Changed, NotEmpty, Lost     Format // why it was left alone: its name
}

// Report is what /status tells owners of the channels and the store.
type Report struct {
	Failed  string // the channels could not be looked at
	Channel Format // a channel, its state, replies that wait, Dropped or ""
	Dropped Format // messages

	Works, WaitsForGateway, NotReceiving string // states

	Sandbox         Format // the driver that confines programs
	NoSandbox       string // as config says
	SandboxMissing  string // none works
	ToolMissing     Format // a built-in tool, and the custom tool in its place that cannot be used
	SandboxNotKnown string // which one is used is being found out

	DeadLetters Format // how many replies could not be sent, the conversation of the last, why
	Damaged     Format // how many entries of the store, the first of them
	NotArchived Format // what is old, the error

	OnDisk      Format // Sizes and Growth, or NotMeasured
	NotMeasured string // nobody knows yet what takes how much of the disk
	NothingKept string // on the disk, as when the store is in memory
	Sizes       Format // bytes on disk, the largest parts, when they were measured
	Growth      Format // after Sizes, or another Growth: since when, how much
}

// OwnerNotices are what owners are told unasked.
type OwnerNotices struct {
	WorkspaceShared Format // the folder
	ConfigFaulty    Format // the first fault
	Undelivered     Format // the conversation, why, the beginning of the message

	StoreReplaced   Format // the time of the copy that is used
	StoreLogDamaged Format // the time up to which nothing is lost
	DamagedFileIn   Format // after StoreReplaced or StoreLogDamaged: the folder
	Abandoned       Format // after these: messages and replies that waited then
	Damaged         Count  // entries that cannot be read: above some of them
	DamagedAdvice   string // below them
	DamagedRestore  Format // after DamagedAdvice: a command
}
