package store

// The buckets, logs and queues of Parley have the names below, and no others.
// They are part of the data of existing installations and never change;
// [Catalogue] says what each holds.
const (
	BucketAPIConversations = "api talks"
	BucketAPIHeads         = "api heads"
	BucketAPIRequests      = "api asked"
	BucketAudit            = "audit"
	BucketBackground       = "background commands"
	BucketBlocked          = "blocked"
	BucketCoding           = "coding messages"
	BucketCommands         = "commands done"
	BucketDeadMessages     = "parked messages"
	BucketDeadReplies      = "parked replies"
	BucketDeliveries       = "delivery"
	BucketGateway          = "gateway"
	BucketJobs             = "jobs"
	BucketLastSent         = "last sent"
	BucketLedger           = "ledger"
	BucketLocks            = "locks"
	BucketMCPPins          = "mcp pins"
	BucketMCPQuestions     = "mcp questions"
	BucketMCPSignIns       = "mcp sign-ins"
	BucketMembers          = "members"
	BucketMemoryChanges    = "memory changes"
	BucketMemoryHeads      = "memory heads"
	BucketMemoryOrigins    = "memory origins"
	BucketMemoryTexts      = "memory texts"
	BucketPaired           = "paired"
	BucketPairing          = "pairing"
	BucketPartitions       = "partitions"
	BucketPolicy           = "policy"
	BucketPush             = "web/push"
	BucketPrompts          = "prompts"
	BucketPromptUses       = "prompt uses"
	BucketQuestions        = "questions"
	BucketReceived         = "received files"
	BucketSessions         = "sessions"
	BucketShells           = "shells"
	BucketSubagents        = "helpers"
	BucketSuspended        = "tries"
	BucketToolCache        = "toolCache"
	BucketToolChoices      = "tool choices"
	BucketToolStats        = "toolStats"
	BucketTraffic          = "traffic"
	BucketTransfer         = "transfer"
	BucketWebPasses        = "web/passes"
	BucketWebPeople        = "web/people"

	LogAudit = "audit"

	QueueInbox  = "inbox"
	QueuePush   = "web/push"
	QueueTitles = "web/titles"
)

// Of the names that follow there is one for each channel, conversation or session.

// OutboxPrefix begins the names of outboxes.
const OutboxPrefix = "outbox/"

// QueueOutbox names the replies that wait to be sent by a channel.
func QueueOutbox(channel string) string { return OutboxPrefix + channel }

// BucketSeen names what a channel knows of how far its network was read.
func BucketSeen(channel string) string { return "seen/" + channel }

// BucketAliases names the other ids that chats of a channel have had.
func BucketAliases(channel string) string { return "alias/" + channel }

// BucketChats names the list of the conversations of a channel that keeps them itself.
func BucketChats(channel string) string { return channel + "/talks" }

// BucketFiles names the files that people may download from such a channel.
func BucketFiles(channel string) string { return channel + "/files" }

// LogChat names the messages of one conversation of such a channel.
func LogChat(channel, person, conversation string) string {
	return channel + "/" + person + "/" + conversation
}

// LogDeadEvents names the events of a network that could not be understood.
func LogDeadEvents(channel string) string { return "dead/" + channel }

// LogSession names the records of a session, whose further conversations have a
// suffix.
func LogSession(session, suffix string) string { return "session/" + session + suffix }

// A Collection is a bucket, log or queue of the Catalogue, or a family of them.
type Collection struct {
	Kind  string // "bucket", "log" or "queue"
	Name  string // of a family with places for what differs, such as "outbox/CHANNEL"
	Holds string
	Trims string // who removes what is no longer needed, and when
}

// Catalogue lists everything that Parley keeps in its store.
func Catalogue() []Collection {
	return []Collection{
		{"bucket", BucketAPIConversations, "conversations of API clients", "channels/api, after 90 days"},
		{"bucket", BucketAPIHeads, "how far those had come, by digest", "channels/api, after 90 days"},
		{"bucket", BucketAPIRequests, "API requests and their answers", "channels/api, after 48 hours"},
		{"bucket", BucketAudit, "the end of the audit log", "nobody: one value"},
		{"bucket", BucketBackground, "commands in the background", "tools/shell, a week after their end"},
		{"bucket", BucketBlocked, "people and groups that are not heard", "owners, who unblock them"},
		{"bucket", BucketCoding, "messages to coding sessions", "tools/mcp/serve, 48 hours after they were read"},
		{"bucket", BucketCommands, "answers to owners' commands that were carried out", "channels, after 48 hours"},
		{"bucket", BucketDeadMessages, "dead letters: messages not answered", "owners; retention.deadLetters"},
		{"bucket", BucketDeadReplies, "dead letters: replies not sent", "owners; beyond 1000; retention.deadLetters"},
		{"bucket", BucketDeliveries, "how far deliveries have come", "channels, when sent, or after 30 days"},
		{"bucket", BucketGateway, "the workspace's path, damage that was reported, sizes", "nobody: a few values"},
		{"bucket", BucketJobs, "scheduled jobs and their last runs", "scheduler, when a job is removed or over"},
		{"bucket", BucketLastSent, "the reply sent last to each chat", "channels, after 30 days"},
		{"bucket", BucketLedger, "what each account used of a day", "agent, after 40 days; retention.usage"},
		{"bucket", BucketLocks, "what the numbers of locks go on from", "nobody: one value"},
		{"bucket", BucketMCPPins, "what was approved of MCP servers", "owners, who configure servers: one value each"},
		{"bucket", BucketMCPQuestions, "what MCP servers ask", "tools/mcp/elicit, when answered, or after 48 hours"},
		{"bucket", BucketMCPSignIns, "sign-ins to MCP servers, encrypted", "tools/mcp/signin, when they end"},
		{"bucket", BucketMembers, "gateways that share the work", "store/partitions, when they have ended"},
		{"bucket", BucketMemoryChanges, "changes of long-term memory", "memory, all but the last 200 of a person"},
		{"bucket", BucketMemoryHeads, "the state of each person's memory", "owners, who let people in: one value each"},
		{"bucket", BucketMemoryOrigins, "where lines of memory come from", "memory, when no kept text has the line"},
		{"bucket", BucketMemoryTexts, "texts of memory files, by digest", "memory, when no change needs them"},
		{"bucket", BucketPaired, "people who were let in", "owners, who unpair them"},
		{"bucket", BucketPairing, "requests to be let in", "channels, after an hour"},
		{"bucket", BucketPartitions, "which gateway does the work of which sessions", "nobody: one value"},
		{"bucket", BucketPolicy, "who may use which tools", "owners, who change it: one value per target"},
		{"bucket", BucketPush, "browsers to be notified, and our key", "channels/web/notify, 60 days after a visit"},
		{"bucket", BucketPrompts, "long texts of model requests", "retention.conversations, after the last use"},
		{"bucket", BucketPromptUses, "when these were last used", "agent, with the text"},
		{"bucket", BucketQuestions, "questions and answers", "channels, 48 hours after the answer, or after 30 days"},
		{"bucket", BucketReceived, "what is known of files that came in", "channels/attachments, with the file"},
		{"bucket", BucketSessions, "the state of each session", "agent, with the conversation"},
		{"bucket", BucketShells, "folders and variables of sessions' shells", "tools/shell, with the conversation"},
		{"bucket", BucketSubagents, "subagents", "agent/subagents, a week after their end"},
		{"bucket", BucketSuspended, "messages that wait for a retry or a model", "agent, when they are answered"},
		{"bucket", BucketToolCache, "results of tools", "tools, when they expire, or beyond 512"},
		{"bucket", BucketToolChoices, "groups of tools they switched", "owners, who let people in: one value each"},
		{"bucket", BucketToolStats, "statistics of tools", "owners, who reset them: one value per tool"},
		{"bucket", BucketTraffic, "messages, turns and times to answer by the hour", "web/traffic, after 31 days"},
		{"bucket", BucketTransfer, "whether the store was copied elsewhere, or into whole", "nobody: one value"},
		{"bucket", BucketWebPasses, "digests of sign-in links, cookies and API keys", "web, when they have expired"},
		{"bucket", BucketWebPeople, "people invited to the web page", "owners, who invite them: one value each"},

		{"bucket", BucketAliases("CHANNEL"), "other ids of moved groups", "owners, who let groups in: two values each"},
		{"bucket", BucketChats("CHANNEL"), "list of the conversations of a page", "its channel, with the conversation"},
		{"bucket", BucketFiles("CHANNEL"), "files offered for download", "its channel, with the conversation"},
		{"bucket", BucketSeen("CHANNEL"), "how far each chat of a network was read", "its driver, when a chat is gone"},

		{"log", LogAudit, "the audit log", "retention.audit; all but the last 500,000 events"},
		{"log", LogChat("CHANNEL", "PERSON", "CONVERSATION"), "what a page shows", "retention.conversations"},
		{"log", LogDeadEvents("CHANNEL"), "dead letters: events not understood", "channels, all but the last 1000"},
		{"log", LogSession("SESSION", ""), "the records of a conversation", "retention.conversations"},

		{"queue", QueueInbox, "messages to be answered", "agent, when they are answered"},
		{"queue", QueuePush, "notifications to be sent", "channels/web/notify, when sent, or after an hour"},
		{"queue", QueueTitles, "conversations to be named", "channels/web/titles, when named, or after 2 tries"},
		{"queue", QueueOutbox("CHANNEL"), "replies to be sent", "channels, when they are sent or dead letters"},
	}
}
