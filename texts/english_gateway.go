package texts

func englishGateway() Gateway {
	return Gateway{
		Commands: GatewayCommands{
			Code:     "write to your coding session",
			Cron:     "see and change scheduled jobs",
			Memory:   "what I know of you",
			Remember: "keep something for good",
			Forget:   "forget memories that contain these words",
			Dream:    "go over my memory now; log, restore, accept: its changes",
			Skills:   "what I have learnt to do",
			Groups:   "switch groups of tools off and on, for you",
			MCP:      "MCP servers: what they offer, and changes to approve",
			Trust:    "files that count as untrusted; have them trusted again (owners)",
			NotDone:  "I could not do that: %s.",
		},
		Coding: Coding{
			Usage: "/code TEXT sends TEXT to your coding session; /code @NAME TEXT to the one called NAME. " +
				"%d messages wait for %s.",
			Nobody: "Coding sessions are written to by owners and by people of the chat page, in private chats.",
			Full:   "Too many messages wait for that coding session. It has to read some of them first.",
			Passed: "Passed on to %s.",
			Kept:   "%s is not connected now. It will get this when it is.",
			Reply:  "💻 %s: %s",
		},
		Jobs: Jobs{
			Usage: "/cron lists the scheduled jobs. With the ID of a job:\n\n/cron history ID – how it went\n/cron " +
				"run ID – run it now; /cron run ID force, also if it is off\n" +
				"/cron off ID, /cron on ID – switch it off, and on again\n/cron remove ID – remove it\n\nTo " +
				"schedule something, tell me what and when.",

			Created:  "Created job '%s' (id: %s)",
			Removed:  "Removed job %s",
			RunsNow:  "Job %s runs now",
			Enabled:  "Enabled job %s",
			Disabled: "Disabled job %s",
			Changed:  "Changed job %s",
			NotFound: "Job %s not found",

			CannotEnable:  "Cannot enable job `%s`.",
			CannotDisable: "Cannot disable job `%s`.",
			CannotEdit:    "Cannot edit job `%s`.",
			CannotRemove:  "Cannot remove job `%s`.",
			OfMemory:      "This is the system's job for consolidating memory (dream). It can only be viewed.",
			OfParley:      "It belongs to Parley and cannot be changed.",

			None:  "No scheduled jobs.",
			List:  "Scheduled jobs:",
			Title: "%s (id: %s, %s)",
			Line:  "%s\n  %s; %s",
			In:    "; in %s",
			More:  "… and %d more",

			Off:        "off",
			NotDue:     "not due again",
			OffBecause: "off: %s",
			Next:       "next: %s",
			Never:      "has not run yet",
			Last:       "last: %s, %s",
			LastNote:   "%s – %s",

			NoHistory: "Job %s has not run yet.",
			History:   "History of %s:",
			Run:       "%s: %s",
			Tokens:    ", %d tokens",
			Cost:      ", cost %.4f",
			RunNote:   " – %s",
			Accepted:  "delivered at %s",

			Every: "every %s",
			At:    "at %s",
			Outcomes: Outcomes{
				Waiting:     "waiting",
				Running:     "running",
				Answered:    "answered",
				Sending:     "waiting to be delivered",
				Delivered:   "delivered",
				Undelivered: "not delivered",
				Silent:      "nothing to say",
				Done:        "done",
				Failed:      "failed",
				Interrupted: "interrupted",
				Stopped:     "stopped",
				Skipped:     "skipped",
				Missed:      "missed",
				Refused:     "refused",
			},
		},
		Dream: Dream{
			Usage: "/dream goes over my memory now. /dream log shows what changed, /dream log ID how, /dream " +
				"restore ID undoes it, and /dream accept ID makes what it proposes.",
			NotOwner: "Only owners can start a dream ahead of schedule. /dream log shows what changed in your memory.",
			Off:      "I do not dream: `dream.cron` in my config is empty.",
			Begun: "I am going over my memory. In a while /dream log shows what changed, and `/cron history " +
				"dream` how it went.",
			Proposed: "Going over my memory, I would like to change %s. `/dream log %s` shows how, and `/dream " +
				"accept %[2]s` makes it so.",
			Note:    "%s, %s",
			Summed:  "%d summed up; %s",
			Parts:   oneOrMany("1 new part of conversations", "%[1]d new parts of conversations"),
			Changes: oneOrMany("1 change", "%[1]d changes"),
			And:     "%s and %s",
		},
		Heartbeat: Heartbeat{
			NothingToDo: "nothing to do in %s",
			NoOwner:     "no owner can be spoken to first",
		},
		Tools: ToolUse{
			None:       "No tool was used yet.",
			List:       "Tools used so far:",
			Tool:       "%s: %d runs, %d failed, %.0f ms on average",
			Cached:     "; %d from memory",
			Skipped:    "; %d skipped",
			Repeated:   "; %d repeated",
			RolledBack: "; %d rolled back",
			Unreliable: "These fail more often than not: %s.",
		},
		Undo: Undo{
			Nothing:  "There is nothing to undo.",
			Done:     "Undone:",
			Restored: "%s restored",
			Removed:  "%s removed",
			AsBefore: "%s is as it was before the turn",
			Changed:  "%s was changed since; left alone",
			NotEmpty: "%s is not empty; left alone",
			Lost:     "%s cannot be restored: its content is lost",
		},
		Report: Report{
			Failed:          "I could not check the channels; the log says why.",
			Channel:         "Channel %s %s. Replies waiting: %d.%s",
			Dropped:         " Messages from unknown senders dropped: %d.",
			Works:           "works",
			WaitsForGateway: "waits for a gateway",
			NotReceiving:    "does not receive; the log says why",
			Sandbox:         "Programs run in a sandbox: %s.",
			NoSandbox: "Programs run WITHOUT a sandbox, because tools.exec.sandbox is none: they may do all that " +
				"I may.",
			SandboxMissing: "Programs do not run here, because no sandbox works; `parley doctor` says why.",
			ToolMissing: "Nobody has the tool %s: the custom tool %s, which is to take its place (tools.override), " +
				"cannot be used.",
			SandboxNotKnown: "I am still finding out which sandbox works here.",
			DeadLetters:     "Replies that could not be sent: %d, the last of them to %s: %s",
			Damaged:         "The store is damaged on disk: %d entries cannot be read, the first is %s.",
			NotArchived:     "What is old (%s) is not removed, because the archive cannot be written: %s",
			OnDisk:          "On disk: %s",
			NotMeasured:     "not measured yet; that is done once a day, first ten minutes after a start.",
			NothingKept:     "nothing is kept there.",
			Sizes:           "%s (%s), measured %s.",
			Growth:          "Since %s: %s.",
		},
		Owners: OwnerNotices{
			WorkspaceShared: "Another gateway uses my workspace %s, too. We overwrite each other's memory and " +
				"files: give one of us another folder (workspace in config.json).",
			ConfigFaulty: "My config.json has faults, so I started with the last one that worked. The first " +
				"fault: %s",
			Undelivered: "A message of mine to %s could not be delivered: %s. It is tried again later, a few " +
				"times; /parked shows what could not be sent.\n\n%s",
			StoreReplaced: "My store was damaged. I continue with the copy of %s; everything after that is lost.",
			StoreLogDamaged: "The latest changes of my store were damaged. I continue without them; " +
				"what came after %s may be lost.",
			Abandoned:     " What waited then is in the dead letters: messages %d, replies %d.",
			DamagedFileIn: " The damaged files are in %s.",
			Damaged: oneOrMany(
				"My store is damaged on disk. I cannot read one of its entries any more:",
				"My store is damaged on disk. I cannot read %[1]d of its entries any more, such as:",
			),
			DamagedAdvice: "Everything else works. Check the disk. What is lost may be in backups that were " +
				"made before.",
			DamagedRestore: " To go back to the latest daily copy, stop me and run: %s",
		},
	}
}
