package texts

func englishFailedSteps() Count { return oneOrMany("%[1]d failed", "%[1]d failed") }

func englishSteps() Steps {
	return Steps{
		Names: englishToolNames(),
		Job: JobSteps{
			Named:       "“%s”",
			Due:         "“%s” for %s",
			Recurs:      "“%s” %s",
			Removed:     "“%s” removed",
			Started:     "“%s” run now",
			SwitchedOn:  "“%s” switched on",
			SwitchedOff: "“%s” switched off",
			Changed:     "“%s” changed",
		},
		To:       "to %s: %s",
		Retrying: "↩ retrying",
		Failed:   englishFailedSteps(),
	}
}

func englishTools() Tools {
	return Tools{
		Struck: "The same error came up three times, so the task is paused.\nError: %s\n\nSend a message to go on.",
		SignIn: SignIn{
			Question: "To use **%s** for you, I need you to sign in there:\n\n%s\n\nThe link is for you alone and " +
				"works for 10 minutes. At the end, a page shows six digits: send them to me here.",
			WrongCode: "These are not the digits that the page shows. Sign in to **%s** first, and then send me the " +
				"six digits:\n\n%s",
			InPrivate:   "Each person uses %s with their own account: ask for it in a private chat, not in a group",
			SignedIn:    "You are signed in to %s.",
			NotSignedIn: "You did not sign in to %s. Ask me again when you want to use it.",
			Cancel:      "Cancel",
		},
		Subtask: Subtask{
			Creating:  "Creating subtask “%s”…",
			Running:   "Subtask “%s” created, running…",
			Succeeded: "Subtask “%s” succeeded",
			Failed:    "Subtask “%s” failed",
			Done:      "%d of %d done",
		},
		Groups: Groups{
			Usage: "/groups lists the groups of tools. /groups off NAME switches one off for you, " +
				"and /groups on NAME on again.",
			None:        "There are no tools here.",
			List:        "Groups of tools:",
			End:         "Switch one with /groups off NAME or /groups on NAME.",
			On:          "%s: on (%s)",
			Off:         "%s: **off** (%s)",
			FixedOn:     "%s: on, as the owner decided (%s)",
			FixedOff:    "%s: **off**, as the owner decided (%s)",
			SwitchedOn:  "From the next answer on I may use the tools of %s.",
			SwitchedOff: "From the next answer on I do without the tools of %s.",
			Unknown:     "There is no group of tools called %s here.",
			Fixed:       "The owner has decided about %s.",
			OnlyOwners:  "In a group chat only owners can switch tools.",
		},
		MCP: englishMCP(),
		Trust: Trust{
			None: "No file counts as untrusted because of who wrote it.",
			List: "These count as untrusted: they were written after I had read untrusted content, or for " +
				"somebody else.",
			File:   "`%s`",
			Folder: "`%s/` and everything in it",
			More:   "and %d more",
			End: "Once you have looked at one, /trust NAME has it count as trusted; of a folder, all that is in " +
				"it. /trust all does so for all.",
			Trusted: oneOrMany(
				"From now on `%[2]s` counts as trusted. Conversations that have read it stay untrusted until /new.",
				"From now on `%[2]s` counts as trusted, with %[1]d files and folders. Conversations that have read "+
					"them stay untrusted until /new.",
			),
			Unmarked: "`%s` is not marked as untrusted. What people send, and long results, count as untrusted " +
				"wherever they are kept: copy what you trust elsewhere.",
			InFolder:   "`%s` is in `%s/`, of which everything counts as untrusted: /trust %s",
			Busy:       "A command that may write untrusted files is at work. Try again when it has ended, or /stop.",
			OnlyOwners: "Only owners can trust files, and in a private chat.",
		},
		Elicit: englishElicit(),
		Approval: Approval{
			Asks:    englishAsks(),
			Names:   englishToolNames(),
			More:    "… and %d more characters, at the end `%s`",
			Sources: "Untrusted content is in this conversation and may have asked for this:",
			Effect: "If you choose *Always here* (until /new) or *For an hour*, I will not ask again " +
				"before I `%s`.",
			PublicNetwork: "It can then reach all public hosts of the internet, by HTTP and HTTPS, but neither this " +
				"machine nor its local networks.",
			WholeNetwork: "It can then reach everything that this machine reaches: the internet, its local networks, " +
				"and what runs on it, Parley's own pages included.",
			Hosts:           "It can then reach these hosts, by HTTP and HTTPS: `%s`.",
			ForThem:         "%s (%s) asks for this at %s.",
			ForOneOfUs:      "%s (%s) asks for this.",
			ForJob:          "The scheduled job %s asks for this.",
			ForSubagent:     "The background task %s asks for this.",
			Yes:             "Yes",
			No:              "No",
			Conversation:    "Always here",
			Hour:            "For an hour",
			WaitingForYou:   "waiting for your approval",
			WaitingForOwner: "waiting for an owner's approval",
		},
	}
}

func englishMCP() MCP {
	return MCP{
		Usage: "/mcp lists the MCP servers.\n\n/mcp show NAME – more about one, and what it has changed\n" +
			"/mcp approve NAME CODE – approve what it has changed; the code is in what /mcp show says\n" +
			"/mcp approve NAME CODE 1 3 – approve only the first and the third change\n" +
			"/mcp reconnect NAME – connect it anew\n" +
			"/mcp login NAME, /mcp logout NAME – sign in to it with your own account, or out",
		None: "There are no MCP servers that you can use here.",
		List: "MCP servers:",
		End: "/mcp show NAME tells more about one. Their prompts are commands, `/mcp_NAME_prompt_…`; /tools lists " +
			"them.",
		Server:     "**%s**: %s",
		Idle:       "not in use",
		Connecting: "it is being connected",
		Connected:  "connected",
		Disabled:   "switched off in the config",
		Ended:      "ended",
		Failed:     "not connected (%s); the next attempt is at %s",
		Offers:     oneOrMany("1 tool", "%[1]d tools"),
		NewOffers:  oneOrMany("1 tool, approved by its first use", "%[1]d tools, approved by their first use"),
		Waiting:    oneOrMany("**1 change waits for approval**", "**%[1]d changes wait for approval**"),
		Calls:      "calls: %d, failed: %d, on average %v",
		First: "Nothing of it has been used so far. The first message that needs it approves what it offers now; " +
			"`parley mcp test %s` and the page %s show all of that.",
		Tool:             "tool",
		Resource:         "resource",
		Template:         "resource template",
		Prompt:           "prompt",
		Instructions:     "instructions of the server",
		Added:            "new: %s %s",
		Changed:          "changed: %s %s (%s)",
		Renamed:          "renamed: %s %s, the same as %s but for its name",
		Damaged:          "What was approved of it earlier cannot be read any more. So all that it offers waits.",
		ConfigChanged:    "Since the last approval, its entry in the config was changed. Before and now:",
		HowToApprove:     "If you want this to be used: `/mcp approve %s %s`",
		HowToApproveSome: "Or only some of it, by their numbers: `/mcp approve %s %s 1`",
		ApprovedSome: oneOrMany("Approved. 1 change of %[2]s still waits: /mcp show %[2]s",
			"Approved. %[1]d changes of %[2]s still wait: /mcp show %[2]s"),
		NoSuchChange:  "%[1]s has no change of that number. `/mcp show %[1]s` shows the numbers.",
		Cut:           "The rest does not fit here. Approve it on the page %s, or by `parley mcp approve %s`.",
		Approved:      "Approved. What %s offers now is used from the next message on.",
		Nothing:       "Nothing of %s waits for approval.",
		Stale:         "Nothing was approved: %s has changed again, or the code is mistyped. This is how it is now:",
		Reconnecting:  "%s is being connected anew.",
		Unknown:       "There is no MCP server called %s. There are: %s",
		SignInNeeded:  "not connected; sign in with `/mcp login %s`",
		SignIn:        "signed in",
		RenewedSignIn: "signed in, renewed automatically",
		SignInUntil:   "signed in until %s",
		LinkComes:     "The link comes in the next message.",
		NoSignIn:      "%s needs no sign-in, or its config has one already.",
		NoLink:        "I could not get a link from %s: it does not answer as it should. Please try again later.",
		SwitchedOff:   "%s is switched off in the config.",
		SignedOut:     "You are signed out of %s.",
		NotRevoked: "I have forgotten your sign-in to %s, but could not tell the service. To be sure, remove Parley " +
			"there in the settings of your account.",
		WasNotSignedIn: "You are not signed in to %s.",
		OnlyOwners:     "Only owners can do that.",
		OnlyPrivate:    "Please ask me that in a private chat.",
		NoPrompt:       "There is no prompt `/%s` here.",
		Prompts:        "There are these:",
		PromptUsage:    "Please write it like this: `%s`",
		Notice: oneOrMany(
			"The MCP server %[2]s offers something that you have not approved. "+
				"I do not use it until you do: /mcp show %[2]s",
			"The MCP server %[2]s offers %[1]d things that you have not approved. "+
				"I do not use them until you do: /mcp show %[2]s"),
	}
}

func englishElicit() Elicit {
	return Elicit{
		Asks:    "The MCP server `%s` asks, for its tool `%s`:",
		More:    "The MCP server `%s` asks (%d of %d):",
		Warning: "*Your answer goes to that server. Never give it passwords or other secrets.*",
		Value:   "Your answer:",
		Review:  "This would be sent to the MCP server `%s`:",
		Open:    "It wants you to open a page of **%s**:\n%s\n\nOpen it only if you trust that address.",
		TooLate: "The MCP server `%s` had asked you something. Parley was restarted meanwhile, and that call was " +
			"lost: it is too late to answer.",
		Samples:          "%s asks the model",
		LooksSecret:      "**It seems to ask for a secret, which servers must not do. It is safer to decline.**",
		Agree:            "Agree",
		Send:             "Send",
		Opened:           "I have opened it",
		Yes:              "Yes",
		No:               "No",
		Skip:             "Skip",
		Decline:          "Decline",
		Cancel:           "Cancel",
		HowToSkip:        "It may be left out: “Skip”.",
		Neither:          "I am waiting for your answer to this. Write “%s” or “%s”.",
		HowToDecline:     "Write your answer, or “Decline”.",
		HowToSkipDefault: "“Skip” leaves it at `%s`.",
		Several:          "one or more of them, by name or number, with commas between them",
	}
}
