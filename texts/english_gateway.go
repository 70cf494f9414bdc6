package texts

func englishGateway() Gateway {
	return Gateway{
		Commands: GatewayCommands{
			Cron:    "what is on the clock",
			NotDone: "I could not do that: %s.",
		},
		Jobs: Jobs{
			Usage: "/cron lists what is on the clock. With the ID of a job:\n\n/cron history ID – how it went\n/cron run ID – run it now; /cron run ID force, also if it is off\n" +
				"/cron off ID, /cron on ID – not for now, and again\n/cron remove ID – not any more\n\nTo put something on the clock, tell me what and when.",

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
			OfParley:      "It belongs to the house, and is only shown.",

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

			Every: "every %s",
			At:    "at %s",
			Outcomes: Outcomes{
				Waiting:     "waiting",
				Running:     "running",
				Answered:    "answered",
				Sending:     "sending",
				Delivered:   "delivered",
				Undelivered: "undelivered",
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
	}
}
