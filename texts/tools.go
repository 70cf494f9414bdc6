package texts

// Tools is what people are told of calls of tools.
type Tools struct {
	Approval Approval
	Subtask  Subtask
	Groups   Groups
	MCP      MCP
	SignIn   SignIn
	Trust    Trust
	Elicit   Elicit
	Struck   Format // the same error three times ends the answer: the error
}

// SignIn is said to people who are to sign in to a service. The first argument is its name.
type SignIn struct {
	Question    Format // the link
	WrongCode   Format // the link
	InPrivate   Format // in a chat that several people read
	SignedIn    Format
	NotSignedIn Format
	Cancel      string // a button
}

// Groups is what /groups says of the groups of tools.
type Groups struct {
	Usage string
	None  string
	List  string // above the list
	End   string // below the list

	On, Off           Format // one of the list that people can switch: its name, its tools
	FixedOn, FixedOff Format // one that the owner's policy has switched: its name, its tools

	SwitchedOn, SwitchedOff, Unknown, Fixed Format // the name

	OnlyOwners string // in a chat that several people read
}

// Trust is what /trust says of files that count as untrusted content.
type Trust struct {
	None         string
	List         string // above the list
	File, Folder Format // one of the list; the name
	More         Format // how many more there are
	End          string // below the list

	Trusted  Count  // so many were meant; the name of the file or folder
	Unmarked Format // nothing was known of it; the name
	InFolder Format // it counts as untrusted because of the folder that it is in: the name, the folder, the same
	Busy     string // a command that may write such files is at work

	OnlyOwners string
}

// Approval is said around the question whether a call may be made.
type Approval struct {
	Asks  Asks
	Names ToolNames

	More    Format // of a long argument: how many characters more, the end of it
	Sources string // above what untrusted content there is
	Effect  Format // what the choices Conversation and Hour allow: an effect

	PublicNetwork string // what a program reaches that has the public internet
	WholeNetwork  string // what it reaches that has the network of the machine
	Hosts         Format // what it reaches that has some hosts: they

	// Who asks stands below the question: somebody's name, their channel and ID, the conversation; in a chat
	// of several people a name, channel and ID; the name of a scheduled job; the task of a subagent.
	ForThem, ForOneOfUs, ForJob, ForSubagent Format

	Yes, No, Conversation, Hour string // choices

	WaitingForYou, WaitingForOwner string // the step, meanwhile
}

// Steps says what calls of tools are at, while they are made. It stands behind the name of the tool.
type Steps struct {
	Job JobSteps
	To  Format // where a message goes, its beginning

	Names ToolNames

	Retrying string // another call is made in the place of this one
	Failed   Count  // how many of an answer's steps; part of the line that sums them up
}

// JobSteps are the tips of steps that manage scheduled jobs.
type JobSteps struct {
	Named       Format // a job: its name
	Due         Format // the same: its name, when it is due, in words or as a time
	Recurs      Format // the same: its name, how often it is due, in words
	Removed     Format // what was done with a job: its name
	Started     Format // the same
	SwitchedOn  Format // the same
	SwitchedOff Format // the same
	Changed     Format // the same
}

// Subtask is the tip of a step that gives tasks to subagents.
type Subtask struct {
	Creating, Running, Succeeded, Failed Format // the name of the task

	Done Format // how many are done, of how many
}

// MCP is what /mcp says of MCP servers.
type MCP struct {
	Usage string
	None  string // there are no servers for the person
	List  string // above the list
	End   string // below the list, for owners

	Server                                       Format // one of the list: its name, its state
	Idle, Connecting, Connected, Disabled, Ended string // its state
	Failed                                       Format // its state: why, when the next attempt is
	Offers, NewOffers                            Count  // of its tools; the same if nobody has used them
	Waiting                                      Count  // of the changes that an owner has not approved
	First                                        Format // nobody has used its tools: the name, the path of the page
	Calls                                        Format // how many, how many failed, how long one takes

	Tool, Resource, Template, Prompt, Instructions string // the kinds of what a server offers
	Added                                          Format // a change: the kind, the name
	Changed                                        Format // the kind, the name, which parts
	Renamed                                        Format // the kind, the name, the name it was approved with
	Damaged                                        string // what was approved cannot be read any more
	ConfigChanged                                  string // above what the config said and says about the server
	HowToApprove, HowToApproveSome                 Format // the name, the code
	ApprovedSome                                   Count  // how many changes still wait, the name
	NoSuchChange                                   Format // the name
	Cut                                            Format // a difference was too long: the path of the page, the server

	SignInNeeded          Format // its state: nobody has signed in to it: the name
	SignIn, RenewedSignIn string // somebody is signed in to it
	SignInUntil           Format // the same: until when
	LinkComes             string // who wants to sign in is asked in another message

	Approved, Nothing, Stale, Reconnecting          Format // the name
	NoSignIn, SignedOut, NotRevoked, WasNotSignedIn Format // the name
	NoLink                                          Format // a sign-in could not begin: the name
	SwitchedOff                                     Format // by the config: the name
	Unknown                                         Format // a name that no server has, those that there are
	OnlyOwners, OnlyPrivate                         string

	NoPrompt    Format // the name of a prompt that does not exist
	Prompts     string // above those that do
	PromptUsage Format // how to write the command of a prompt, which has no value for an argument

	Notice Count // what owners are told when a server changes: the number of changes, the name
}

// Elicit is said around questions of MCP servers.
type Elicit struct {
	Asks    Format // above what the server says: its name, the tool
	More    Format // above a further question: the server's name, the number of the question, how many there are
	Warning string // below what the server says
	Value   string // before the name of the value that is asked for
	Review  Format // above the answers: the server's name
	Open    Format // the host, the address
	TooLate Format // a restart has ended the call: the server's name
	Samples Format // a call does that: the server's name

	LooksSecret string // below a question for a password or the like

	Agree, Send, Opened, Yes, No, Skip, Decline string // choices
	Cancel                                      string // a choice of a form; can be written instead of Decline

	HowToSkip, HowToDecline string
	Neither                 Format // what was written is neither of the two choices
	HowToSkipDefault        Format // the value that is taken then
	Several                 string // how several choices are written
}
