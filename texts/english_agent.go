package texts

func englishAgent() Agent {
	return Agent{
		Span:  englishSpan(),
		Steps: englishSteps(),
		Speakers: Speakers{
			Schedule: "a scheduled job",
			Agent:    "the agent",
			Subagent: "a background task",
		},
		Help: Help{
			Start: "Hello! Write to me as you would to a person: ask me something, send me a file, or say " +
				"\"remind me in ten minutes to stretch\".\n/new begins a new conversation, /stop stops an answer, " +
				"and /help lists the rest.",
			Intro: "Write to me as you would to a person. I can use tools, and I answer what you ask.",
			Owners: "/pair, /unpair – who else may talk to me (owners)\n" +
				"/parked, /resend, /drop – replies that could not be sent (owners)",

			New:       "begin a new conversation",
			Stop:      "stop the answer under way",
			Retry:     "answer the last message again",
			Undo:      "put back the files that I changed last",
			Search:    "find what was said here before",
			Why:       "what was done for the last answer, or the one that you reply to; with words: how I know that",
			Status:    "what I am doing",
			Approvals: "what I may do without asking again; revoke NUMBER, revoke all",
			Agents:    "the background tasks; stop, pause or resume ID, tell ID WORDS",
			Verbose:   "show the steps on the way, or not: on, off",
			Model:     "show or choose the model",
			Tools:     "what I can use; all: under every name",
			Tool:      "run a tool without a model: NAME {arguments} (owners)",
			Context:   "what I keep in mind",
			Usage:     "tokens used in this conversation, and today's limits",
			Raise:     "raise a limit for today (owners)",
			ToolStats: "how the tools have done (owners)",
			Help:      "what you can do here",
		},
		Turn: Turn{
			Stopped:     "(Stopped.)",
			StoppedWith: "(Stopped, with %s.)",
			Later:       "%s I will answer by myself once it is back; you need not write again.",
			Back:        "(I could not reach my model when you wrote. It is back, and this is the answer.)",
			Unreadable: "A part of this conversation is damaged on disk, and with it what I may have done about " +
				"this message already. I will not begin it again by myself, so that nothing is done twice. Please " +
				"say it again if it still matters.",
			Panic:      "Something went wrong inside me. The error is in my log. Please try again.",
			NoNews:     "There is nothing to say.",
			ToolFailed: "I could not do that with %s: %s",
			GivenUp: "I crashed three times over this message, so I will not try it again. Please say it in " +
				"other words, or in smaller pieces.",
			TooOld: oneOrMany(
				"I was away, and your message is more than %[2]s old. I have read it; say so if you still want an "+
					"answer.",
				"I was away, and your %[1]d messages are more than %[2]s old. I have read them; say so if you "+
					"still want an answer.",
			),
			Filtered:     "The model's provider filtered this answer out. Please put it in other words.",
			FilteredRest: "(The model's provider filtered out the rest of this answer.)",
			TooLong:      "(This answer reached the length limit.)",
			NoRoom: "The model used up the length of its answer before it said anything. Please try again, " +
				"or ask for less at a time.",
			NoAnswer: "The model answered nothing, although I asked it twice. Please try again, or put it in " +
				"other words.",
			NothingMore: "(After that the model answered nothing, although I asked it twice.)",
			OutOfRounds: "I reached the maximum number of tool call iterations (%d) without completing the task. " +
				"You can try breaking the task into smaller steps.",
		},
		Model: Model{
			Auth:        "The model's provider does not accept my key; whoever runs me must set a valid one.",
			Quota:       "The account at the model's provider is out of credit; whoever runs me has to top it up.",
			BadRequest:  "The model did not accept the request; whoever runs me finds the reason in the log.",
			TooLong:     "This conversation has become too long for the model; /new starts a fresh one.",
			RateLimited: "The model is rate limited right now; please try again in %s.",
			Overloaded:  "The model is overloaded right now; please try again in %s.",
			Cut:         "The model broke off in the middle of its answer; please try again.",
			TimedOut:    "The model took too long to answer; please try again.",
			Unreachable: "The model cannot be reached right now; please try again in a minute.",
			Soon:        Soon{oneOrMany("a minute", "%[1]d minutes"), "an hour or more"},
			Away: Away{
				RateLimited: "The model is rate limited right now.",
				Overloaded:  "The model is overloaded right now.",
				Cut:         "The model broke off in the middle of its answer.",
				TimedOut:    "The model took too long to answer.",
				Unreachable: "The model cannot be reached right now.",
			},
			Stopped:     "I was stopped before I could answer.",
			TookTooLong: "The answer took too long, so I gave up; please try again.",
			Unknown:     "Something went wrong inside, so I have no answer; please try again.",
		},
		Commands: Commands{
			Failed:  "I could not do that; the log says why.",
			Unknown: "There is no command %s. /help lists the commands there are.",

			UnknownNear: "There is no command %s. Did you mean /%s? /help lists the commands there are.",

			New:         "A new conversation. What is on your mind?",
			NothingHere: "There is nothing to answer again yet.",
			CannotGoBack: "I cannot go back there: a new conversation was begun since, that part was removed because " +
				"it was old, or an earlier message still waits for its answer. Please send it as a new message.",
			JobGone: "The last answer came from a scheduled job that no longer exists.",
			NoStop:  "There is nothing to stop.",

			NoSearch:    "Write /search and the words that you look for.",
			NotFound:    "I found nothing like that in what was said here.",
			NotSearched: "A part of this conversation is damaged on disk, and I could not look there.",
			NotKept:     "What was said here before %s is not kept any more, but for what I am still shown.",
			Found:       "Said here, the latest first:",
			Me:          "I",

			NoUndo:      "You may not change files here, so there is nothing that you could undo.",
			CannotUndo:  "I cannot undo anything here.",
			Interrupted: "I was interrupted while I undid that. It may be done: look before you write /undo again.",

			Idle:    "idle",
			Am:      "I am %s.",
			Since:   "%s, for %s now",
			ModelIs: "Model: %s",
			Up:      "Up for %s. Answers under way, in all conversations: %d; messages not answered yet: %d.",
			SubagentsWork: oneOrMany("A background task is running: /agents", "%[1]d background tasks are running: "+
				"/agents"),
			Untrusted: "Untrusted content is in this conversation: %s. It may be behind what I do, so I ask an " +
				"owner before anything that reaches beyond this conversation. /new begins one without it; " +
				"/approvals shows what needs no more asking.",
			NotListed:   "I could not list the messages that I gave up; the log says why.",
			DeadMessage: "Not answered, because I crashed over it: %s",
			DeadMessageRetried: "Not answered, because I crashed over it: %s (tried again once I have been up for " +
				"five minutes)",
			AndMore: "… and %d more.",

			ModelHere:    "This conversation uses %s. There are: %s. Choose with /model NAME.",
			ModelUnknown: "There is no model of that name. There are: %s.",
			ModelChosen:  "From the next answer on this conversation uses %s.",

			Usage:     "Tokens used in this conversation:",
			UsageOf:   "%s: %s in (%s from cache), %s out",
			UsageCost: ", cost %.4f",
			UsageNone: "none yet.",

			StepsHidden: "Steps are not shown in this conversation. /verbose on shows them.",
			StepsShown:  "Steps are shown in this conversation. /verbose off hides them.",
			StepsHide:   "Steps are hidden from the next answer on. /verbose on shows them again.",
			StepsShow:   "Steps are shown from the next answer on. /verbose off hides them.",

			NoTools:    "There are no tools here.",
			OtherName:  "another name of `%s`",
			NotCounted: "There are no tool statistics here.",
			ForOwners:  "Only owners can see that.",
			ToolUsage:  "Name a tool and its arguments: /tool calculator {\"expression\": \"2+3\"}. /tools lists all.",

			ContextModel:    "Model: %s, which takes %d tokens, %d of them for its answer.",
			ContextNext:     "The next request takes about %d: %d of instructions, %d of tools, %d of conversation.",
			ContextMessages: "Messages: %d. Results of tools left out: %d. Pictures: %d.",
			ContextSummary:  "What was said before them is summed up in about %d.",
		},
		Doing: Doing{
			Thinking:   "thinking",
			Fetching:   "fetching files",
			Summing:    "summing up",
			Archiving:  "archiving",
			Forgetting: "forgetting",
			Suspending: "suspending a message",
			Answer:     "waiting for your answer",
			Subagents:  "waiting for background tasks",
			Turn:       "waiting for its turn",
			Using:      "using %s",
			Command:    "busy with /%s",
		},
		Limits: Limits{
			Reached: "Today's limit for %s is reached: %s. It resets at midnight (%s). An owner can raise it " +
				"with /raise %s.",
			Low:     "%d %% of today's limit for %s is used: %s.",
			NoRaise: "Only owners may raise limits.",
			NoSuch: "Nothing is raised: there is no such limit, or it is far away. Write /raise and whose: a " +
				"person such as telegram:42, session, job and its ID, or all.",
			Share: "%s of %s %s",

			ShareCost: "cost %s of %s (in the currency of your prices)",

			Today:    "Today, until midnight (%s):",
			Raised:   "Raised, until midnight (%s):",
			You:      "you",
			Group:    "this group",
			Session:  "this conversation",
			Job:      "this job",
			Everyone: "everybody together",

			Answers: "answers", Requests: "requests", Tokens: "tokens", Subagents: "background " +
				"tasks", Megabytes: "megabytes",
		},
		Subagents: Subagents{
			Some: oneOrMany("a background task", "%[1]d background tasks"),
			Usage: "Write /agents to see the background tasks, or /agents stop ID, /agents pause ID, /agents " +
				"resume ID, /agents tell ID WORDS. The first letters of an ID are enough; all means all of yours.",
			Unknown:     "You have no such background task; /agents lists them.",
			Several:     "Several background tasks have an ID that begins like that; please write more of it.",
			None:        "No background tasks are running.",
			List:        "Background tasks:",
			Named:       "'%s' (`%s`)",
			One:         "the background task %s",
			More:        "%s: %s",
			Began:       "%s, began %s ago",
			Steps:       oneOrMany("1 step done", "%[1]d steps done"),
			For:         "for `%s`",
			NotAll:      "I could not stop all background tasks; the log says why.",
			NotTold:     "Finished, but their reports have not been delivered. I will try again a few times:",
			Undelivered: "- `%s` %s – undelivered, ended %s ago: %s",
			Stopped:     "Stopped %s.",
			Paused:      "Paused %s.",
			Resumed:     "Resumed %s.",
			Told:        "Told %s.",
		},
		Why: Why{
			NoAnswer: "I have not answered anything here yet.",
			NotFound: "I do not find that answer among my last %d here.",
			NoCalls: "For my answer to “%s” (%s) I used no tool: nothing was looked up, sent or changed, whatever it " +
				"says.",
			Calls: oneOrMany("For my answer to “%[2]s” (%[3]s) I made one call:",
				"For my answer to “%[2]s” (%[3]s) I made %[1]d calls:"),
			End: "A receipt stands for one call and its result. Whoever runs me finds it in the audit log: " +
				"`parley audit`",
			Done:        "done",
			Interrupted: "interrupted; it may have taken effect",
			NotMade:     "not made",
			Failed:      "failed: %s",
			Altered:     "its stored result is not the one that the receipt stands for",
			Retried:     "found nothing of use, so I asked in other words",
			By:          "approved by %s",
			Receipt:     "receipt `%s`",
		},
		Approvals: Approvals{
			None: "Nothing is approved in advance. Whenever untrusted content may be behind an action that " +
				"reaches beyond this conversation, I ask.",
			Usage: "Write /approvals to see what I may do without asking, /approvals revoke NUMBER to revoke " +
				"one of these, or /approvals revoke all.",
			NotOwner: "Only owners can revoke approvals.",
			Revoked:  "Revoked. I will ask again.",
			List:     "Without asking again I may:",
			End:      "To revoke one, write /approvals revoke NUMBER; to revoke all, /approvals revoke all.",
			UntilNew: "until /new",
			Until:    "until %s",
		},
	}
}
