package texts

func englishMemory() Memory {
	return Memory{
		Skills: englishSkills(),
		Why:    englishMemoryWhy(),

		NoChange:      "There is no such change; `/dream log` lists them.",
		ChangeDamaged: "That change is damaged on disk.",
		ChangeGone:    "What that change wrote has been replaced since, so it cannot be undone.",

		RememberUsage: "What should I remember? `/remember TEXT`",
		RememberLong:  "That is too long to remember; the limit is %d characters.",
		Full:          "My memory of you is full or cannot be read, so I noted nothing. `/forget WHAT` makes room.",
		Noted:         "Noted.",

		ForgetUsage: "What should I forget? `/forget WHAT`, in at least %d characters.",
		ForgetMany: "%d lines and parts of conversations contain that. Be more specific, or `/forget all %s` " +
			"if you mean them all.",
		ForgetNothing:    "Nothing in my memory contains that, so there is nothing to forget.",
		Forgotten:        "Forgotten: %s of past conversations, %s.",
		ForgetUndo:       "`/dream restore %s` brings that back.",
		Parts:            oneOrMany("1 part", "%[1]d parts"),
		Lines:            oneOrMany("1 line", "%[1]d lines"),
		Remembered:       "I remember %s of past conversations%s.",
		Unread:           " (%d not processed yet)",
		RemembersNothing: "I remember nothing about you yet. `/remember TEXT` notes something.",
		ChangeProposed:   "a change is proposed",
		HeardFromOthers:  "heard from others",
		PassedOver:       "the model failed %d times with parts %d to %d of past conversations, so they were skipped",
		Unchanged:        "My memory of you has not changed yet.",
		Changes:          "The last changes of my memory of you:",
		HowToUndo:        "`/dream log ID` shows a change, `/dream restore ID` undoes it.",
		Restored:         "Change %s is undone; `/dream restore %s` takes that back.",
		Accepted:         "The proposal of change %s is accepted; `/dream restore %s` takes that back.",
		NothingToAccept: "There is nothing left to accept in change %s: it proposes nothing, or later changes are " +
			"in the way.",
		DamagedOnDisk: "damaged on disk",
		Proposed:      " (proposed: %s; `/dream accept %s` makes it so)",
	}
}

func englishMemoryWhy() MemoryWhy {
	return MemoryWhy{
		Usage:         "What do you wonder about? `/why WORDS` shows what I remember about it, and from where.",
		Nothing:       "Nothing in my notes is about that.",
		Unknown:       "Where this comes from is not known.",
		UnknownBefore: "Where this comes from is not known: it is older than %s.",
		Here:          "this conversation",
		Conversation:  "%s on %s",
		Dream:         "From what was said in %s; noted on %s.",
		DreamOneOf:    "From one or more of %d parts of conversations, most likely %s; noted on %s.",
		Told:          "It was noted with `/remember`, in %s on %s.",
		Said:          "I noted it myself, in %s on %s.",
		ByHand:        "It was written into the file, by hand or by a program, and found there on %s.",
		OnPage:        "It was written on the owner's page, on %s.",
		Changed:       "It was written by `%s` on %s.",
		Untrusted:     "It is based on content that nobody vouches for.",
		UntrustedFrom: "It is based on content that nobody vouches for, from %s.",
	}
}
