package texts

// Tools is what people are told of calls of tools.
type Tools struct {
	Approval Approval
	Subtask  Subtask
	Groups   Groups
	MCP      MCP
	Struck   Format // the same error three times ends the answer: the error
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

// Approval is said around the question whether a call may be made.
type Approval struct {
	May     Format // the name of a tool
	More    Format // of a long argument: how many characters more, the end of it
	Sources string // above what untrusted content there is
	Effect  Format // what Conversation and Hour allow: an effect

	PublicNetwork string // what a program reaches that has the public internet
	WholeNetwork  string // what it reaches that has the network of the machine
	Hosts         Format // what it reaches that has some hosts: they

	ForThem Format // channel and ID of who asks, the conversation, the question

	Yes, No, Conversation, Hour string // choices

	WaitingForYou, WaitingForOwner string // the step, meanwhile
}

// Steps says what calls of tools are at, while they are made.
type Steps struct {
	Reading, Listing, Writing, Editing, Deleting Format // a file or folder; Reading also web pages
	MakingDirectory, LookingFor, SearchingFor    Format // a folder; a file or folder; words
	Searching, SearchingMemory                   Format // words
	RunningCommand                               Format // a command
	EverySeconds                                 Format // how often a job runs
	To                                           Format // where a message goes, its beginning

	Retrying string // another call is made in the place of this one
	Failed   Count  // how many of an answer's steps; part of the line that sums them up
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
	Offers, Waiting                              Count  // of its tools; of the changes that an owner has not approved
	Calls                                        Format // how many, how many failed, how long one takes

	Tool, Resource, Template, Prompt, Instructions string // the kinds of what a server offers
	Added                                          Format // a change: the kind, the name
	Changed                                        Format // the kind, the name, which parts
	Renamed                                        Format // the kind, the name, the name it was approved with
	Damaged                                        string // what was approved cannot be read any more
	ConfigChanged                                  string // above what the config said and says about the server
	HowToApprove                                   Format // the name, the code
	Cut                                            Format // a difference was too long: the path of the page that has it

	Approved, Nothing, Stale, Reconnecting Format // the name
	Unknown                                Format // a name that no server has, those that there are
	OnlyOwners, OnlyPrivate                string

	Notice Count // what owners are told when a server changes: the number of changes, the name
}
