package texts

func englishChannels() Channels {
	return Channels{
		Span:        englishSpan(),
		FailedSteps: englishFailedSteps(),
		Commands: HubCommands{
			OnlyOwner:       "Only my owner can ask me that.",
			InPrivate:       "Please ask me that in a private chat.",
			NobodyAsks:      "Nobody is asking to be let in.",
			Asking:          "These people ask to be let in:",
			Asks:            "%s, %s ago: `/pair %s`",
			NoCode:          "Nobody has that code, or it is older than an hour. Send /pair to see who is asking.",
			Paired:          "%s may talk to me now. To take that back, send `/unpair %s:%s`.",
			NotPaired:       "`%s` is not among those let in by a code. Allow lists are changed in the config.",
			Unpaired:        "`%s` is no longer let in by a code.",
			Whom:            "Who is it? Write `/unpair channel:id`.",
			Who:             "%s (`%s:%s`)",
			NoName:          "Somebody without a name",
			NoDeadLetters:   "There are no replies that could not be sent.",
			DeadLetters:     "Replies that could not be sent: %d.",
			DeadLetter:      "`%s` to `%s`, %s ago: “%s” (%s)",
			DeadLetterUsage: "`/resend` or `/drop` takes one of these names, or `all`.",
			NoSuchReply:     "There is no such reply. Send /parked to see them.",
			Resent:          "Sent again: %d.",
			Gone:            "Dropped: %d.",
		},
		Pairing: Pairing{
			Refused: "I only talk to people my owner has let in. If you should be one of them, ask the owner to " +
				"send me `/pair %s` or to run `parley pair %s`. The code is good for an hour.",
			Welcome: "You can talk to me now.",
		},
		Question: Question{
			Yes:             "Yes",
			No:              "No",
			ByNumber:        "Answer with a number.",
			ByNumberOrWords: "Answer with a number or in your own words.",
			ByLetter:        "Answer %s.",
			ByLetterOrWords: "Answer %s or in your own words.",
			Letters:         "%s or %s",
			NoLongerAsked:   "no longer asked",
			Answered:        "**%s**",
			ByWhom:          "**%s** — %s",
		},
		Fetch: Fetch{
			Failed:   "I could not receive %s.",
			TooBig:   "I could not receive %s because it is too big.",
			DiskFull: "I could not receive %s because my disk is full.",
			Gone:     "I could not receive %s because it is no longer there.",
			File:     "a file",
			NotHeard: "I could not listen to your voice message. Please write to me instead.",
		},
		Files: Files{
			Gone:     "%s cannot be opened any more",
			Empty:    "%s is empty",
			Refused:  "%s is too large for Discord",
			TooLarge: "%s is larger than the %d MB that I may send here",
			TooMany: "Your files would take more than the %d MB that are allowed. Ask me to delete some, " +
				"then send it again.",
			Rest: "The rest is in the attached file.",
			RestKept: "The rest could not be sent as a file here. The whole answer is kept as `%s`. Ask me to read " +
				"it to you.",
			Kept: "The whole answer is kept as %s.",
		},
		DiskFull: "My disk is full, so your message has to wait. I will take it as soon as there is space again.",
		NotKept:  "I could not store that. Please try again in a moment.",
		MoreText: "what else to say",
	}
}
