package texts

// Memory is what is said of what is remembered.
type Memory struct {
	Skills Skills

	NoChange, ChangeDamaged, ChangeGone string // a change that cannot be shown or undone

	RememberUsage string
	RememberLong  Format // the most characters
	Full          string // nothing was noted
	Noted         string

	ForgetUsage     Format // the fewest characters
	ForgetMany      Format // how many lines and parts, the words that were looked for
	ForgetNothing   string
	Forgotten       Format // Parts, Lines
	ForgetUndo      Format // below the lines: the ID of the change
	Parts, Lines    Count  // of past conversations; of files
	Remembered      Format // Parts, how many of them were not processed yet
	Unchanged       string
	Changes         string // above the list of changes
	HowToUndo       string // below it
	Restored        Format // the ID of a change, the ID of the change that undid it
	Accepted        Format // the ID of a change, the ID of the change that made it
	NothingToAccept Format // the ID of a change
	DamagedOnDisk   string // in the place of what a change did
	ChangeProposed  string // why there is a change: it only proposes one
	HeardFromOthers string // … it is about what others said
	PassedOver      Format // … how often the model failed, over which parts of past conversations: from, to
	Proposed        Format // after a change: files, the ID of the change
}
