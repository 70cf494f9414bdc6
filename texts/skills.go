package texts

// Skills is what /skills says of the pages that people write for the agent.
type Skills struct {
	Skills, Agents string // above the lists
	None           string // in the place of a list
	HowTo          string // below the lists

	Always  string // follows the name of a skill that is always part of the prompt
	Broken  Format // in the place of what a page is about: its fault, in the words of Faults
	Lacking Format // a page that cannot be used now: why, what it is about
	Needs   Format // why: programs, variables or tools
	NoTool  Format // … tools
	NoModel Format // … a model

	Faults PageFaults
}

// PageFaults are what can be wrong with a page.
type PageFaults struct {
	Name          string // it is called so as no page may be
	TooBig        Format // the most KiB
	NotText       string // or without a head
	OtherName     Format // the name that it says, the one of its file
	NoDescription string
	NoText        string
	Rounds        string
	Paths         string

	// In a line of the head, by its number.
	NoKeys     Format // the line
	UnknownKey Format // the line, the key
	WrongValue Format // the line, the key, what its value must be

	// What a value must be.
	Text, YesNo, Number, Names string

	Folder  string // it cannot be read
	TooMany Format // pages in a folder, of which no more than so many are read
}
