package texts

// Memory is what is said of what is remembered.
type Memory struct {
	Skills Skills
	Why    MemoryWhy

	NoChange, ChangeDamaged, ChangeGone string // a change that cannot be shown or undone

	RememberUsage string
	RememberLong  Format // the most characters
	Full          string // nothing was noted
	Noted         string

	ForgetUsage      Format // the fewest characters
	ForgetMany       Format // how many lines and parts, the words that were looked for
	ForgetNothing    string
	Forgotten        Format // Parts, Lines
	ForgetUndo       Format // below the lines: the ID of the change
	Parts, Lines     Count  // of past conversations; of files
	Remembered       Format // Parts, Unread or ""
	Unread           Format // how many of them were not processed yet
	RemembersNothing string
	Unchanged        string
	Changes          string // above the list of changes
	HowToUndo        string // below it
	Restored         Format // the ID of a change, the ID of the change that undid it
	Accepted         Format // the ID of a change, the ID of the change that made it
	NothingToAccept  Format // the ID of a change
	DamagedOnDisk    string // in the place of what a change did
	ChangeProposed   string // why there is a change: it only proposes one
	HeardFromOthers  string // … it is about what others said
	PassedOver       Format // … how often the model failed, over which parts of past conversations: from, to
	Proposed         Format // after a change: files, the ID of the change
}

// MemoryWhy says where lines of memory come from.
type MemoryWhy struct {
	Usage         string
	Nothing       string // no line of memory has the words
	Unknown       string // where a line comes from was never recorded
	UnknownBefore Format // … and it is older than this time
	Here          string // in the place of a session: the conversation in which it is asked
	Conversation  Format // a session, the time of what was said in it
	Dream         Format // conversations, the time of the dream that made the line
	DreamOneOf    Format // of how many parts of conversations the line may be, the likeliest of these, the time
	Told          Format // the line was written with /remember: the session, the time
	Said          Format // the agent wrote the line: the session, the time
	ByHand        Format // somebody wrote the line into the file: the time when that was seen
	OnPage        Format // an owner wrote the line on the owner's pages: the time
	Changed       Format // a change such as "restore 2" wrote the line, the time
	Untrusted     string // after one of these: the line is based on untrusted content
	UntrustedFrom Format // … from these places
}
