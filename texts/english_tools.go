package texts

func englishFailedSteps() Count { return oneOrMany("%[1]d failed", "%[1]d failed") }

func englishSteps() Steps {
	return Steps{
		Reading:         "Reading %s",
		Listing:         "Listing %s",
		Writing:         "Writing %s",
		Editing:         "Editing %s",
		Deleting:        "Deleting %s",
		MakingDirectory: "Making directory %s",
		LookingFor:      "Looking for %s",
		SearchingFor:    "Searching for %s",
		Searching:       "Searching %s",
		SearchingMemory: "Searching memory for %s",
		RunningCommand:  "Running %s",
		EverySeconds:    "every %v s",
		To:              "to %s: %s",
		Retrying:        "↩ retrying",
		Failed:          englishFailedSteps(),
	}
}

func englishTools() Tools {
	return Tools{
		Struck: "The same error came up three times, so the task is paused.\nError: %s\n\nSend a message to go on.",
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
		Approval: Approval{
			May:     "May I use `%s`?",
			More:    "… and %d more characters, at the end `%s`",
			Sources: "Untrusted content is in this conversation and may have asked for this:",
			Effect: "If you choose *Conversation* (until /new) or *Hour* (for an hour), I will not ask " +
				"again before I `%s`.",
			PublicNetwork: "It can then reach all public hosts of the internet, by HTTP and HTTPS, but neither this " +
				"machine nor its local networks.",
			WholeNetwork: "It can then reach everything that this machine reaches: the internet, its local networks, " +
				"and what runs on it, Parley's own pages included.",
			Hosts:           "It can then reach these hosts, by HTTP and HTTPS: `%s`.",
			ForThem:         "`%s:%s` asks for this at `%s`.\n\n%s",
			Yes:             "Yes",
			No:              "No",
			Conversation:    "Conversation",
			Hour:            "Hour",
			WaitingForYou:   "waiting for your approval",
			WaitingForOwner: "waiting for an owner's approval",
		},
	}
}

func englishMCP() MCP {
	return MCP{
		Usage: "/mcp lists the MCP servers.\n\n/mcp show NAME – more about one, and what it has changed\n" +
			"/mcp approve NAME CODE – approve what it has changed; the code is in what /mcp show says\n" +
			"/mcp reconnect NAME – connect it anew",
		None:          "There are no MCP servers that you can use here.",
		List:          "MCP servers:",
		End:           "/mcp show NAME tells more about one.",
		Server:        "**%s**: %s",
		Idle:          "nobody has used it yet",
		Connecting:    "it is being connected",
		Connected:     "connected",
		Disabled:      "switched off in the config",
		Ended:         "ended",
		Failed:        "not connected (%s); the next attempt is at %s",
		Offers:        oneOrMany("1 tool", "%[1]d tools"),
		Waiting:       oneOrMany("**1 change waits for approval**", "**%[1]d changes wait for approval**"),
		Calls:         "calls: %d, failed: %d, on average %v",
		Tool:          "tool",
		Resource:      "resource",
		Template:      "resource template",
		Prompt:        "prompt",
		Instructions:  "instructions of the server",
		Added:         "new: %s %s",
		Changed:       "changed: %s %s (%s)",
		Renamed:       "renamed: %s %s, the same as %s but for its name",
		Damaged:       "What was approved of it earlier cannot be read any more. So all that it offers waits.",
		ConfigChanged: "Since the last approval, its entry in the config was changed. Before and now:",
		HowToApprove:  "If you want this to be used: `/mcp approve %s %s`",
		Cut:           "The rest does not fit here. The page %s shows all of it.",
		Approved:      "Approved. What %s offers now is used from the next message on.",
		Nothing:       "Nothing of %s waits for approval.",
		Stale:         "%s has changed again since you looked, so nothing was approved. This is how it is now:",
		Reconnecting:  "%s is being connected anew.",
		Unknown:       "There is no MCP server called %s. There are: %s",
		OnlyOwners:    "Only owners can do that.",
		OnlyPrivate:   "Please ask me that in a private chat.",
		Notice: oneOrMany(
			"The MCP server %[2]s offers something that you have not approved. "+
				"I do not use it until you do: /mcp show %[2]s",
			"The MCP server %[2]s offers %[1]d things that you have not approved. "+
				"I do not use them until you do: /mcp show %[2]s"),
	}
}
