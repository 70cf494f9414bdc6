package texts

// Channels is what the hub and its channels say.
type Channels struct {
	Span     Span
	Commands HubCommands
	Pairing  Pairing
	Question Question
	Form     Form
	Fetch    Fetch
	Files    Files

	FailedSteps Count // of an answer; part of the line that sums up its steps, as Steps.Failed

	DiskFull string // a message has to wait until there is space
	NotKept  string // a press or a command was not taken in; try again
	MoreText string // in menus: what may follow a command
}

// HubCommands is what the hub's commands answer.
type HubCommands struct {
	OnlyOwner, InPrivate string

	NobodyAsks string
	Asking     string // above the list of those who ask to be let in
	Asks       Format // one of them: who, how long ago as a Span, the code
	NoCode     string
	Paired     Format // who, in the words of Who; channel, ID
	NotPaired  Format // channel and ID
	Unpaired   Format // channel and ID
	Whom       string // /unpair without a name
	Who        Format // name, channel, ID
	NoName     string // in the place of a name

	NoDeadLetters   string
	DeadLetters     Format // above the list: their number
	DeadLetter      Format // one: its name, the conversation, how long ago as a Span, the beginning of its text, why
	DeadLetterUsage string // below the list
	NoSuchReply     string
	Resent, Gone    Format // how many
}

// Pairing is said to people who are not let in yet.
type Pairing struct {
	Refused Format // the code, twice
	Welcome string

	// To an owner at a terminal:
	Knock  Format // somebody wants to talk: their name, channel and ID; the code
	Knocks string // and others do
}

// Question is what is said around a question.
type Question struct {
	Yes, No          string // two choices
	ByNumber         string // how to answer
	ByNumberOrWords  string
	ByLetter         Format // letters, as Letters lists them
	ByLetterOrWords  Format
	Letters          Format // all letters but the last, with commas between them; the last one
	NoLongerAsked    string
	Answered, ByWhom Format // the choice; the choice, who made it
}

// Form is what is said of values that people fill in.
type Form struct {
	// What a value is to be: several of these stand side by side, and each in MustBe.
	Integer, Number                string
	Email, Address, Date, DateTime string
	Format                         Format // the name of another format
	AtLeast, AtMost                Format // a number
	Longer, Shorter                Format // a number of characters
	AtLeastOptions, AtMostOptions  Format // a number of choices

	MustBe       Format // one of those
	Separators   string // a number has separators of thousands, which others read as those of fractions
	WrongPattern string // it does not have the form that it should have
	Missing      string
	NotAChoice   string
}

// Fetch is what is said when something that a person sent is not taken in.
type Fetch struct {
	Failed, TooBig, DiskFull, Gone Format // the name of a file
	File                           string // in the place of a name
	NotHeard                       string // a voice message
}

// Files is said in the place of files that could not be sent.
type Files struct {
	Gone, Empty, Refused Format // the name of a file
	TooLarge             Format // the name, megabytes
	TooMany              Format // files that a person has: megabytes that they may

	Rest     string // the rest of an answer that is too long for messages is in the file below
	RestKept Format // the file could not be sent; where the whole answer is kept
	Kept     Format // where the whole answer is kept
}
