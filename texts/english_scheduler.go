package texts

func englishScheduler() Scheduler {
	return Scheduler{
		Refusals: Refusals{
			Off:           "this job is switched off: switch it on, or run it once with force",
			Running:       "this job is running already",
			Past:          "its time has passed",
			TooOften:      "it would run more often than every %d seconds",
			UnknownZone:   "there is no time zone '%s'",
			UnknownFields: "its schedule '%s' cannot be understood",
		},

		Closed:     "Parley was stopped",
		Copied:     "it was under way when the backup was made",
		Lost:       "its end was never reported",
		NotAllowed: "its author may not talk to the agent any more",
		Damaged:    "its record is damaged",
		Away:       "Parley was not running when it was due",

		Missed:     "Parley was not running at that time",
		Skipped:    "the run before was not over",
		ManyMissed: oneOrMany("a run was missed, from %[2]s to %[3]s", "%[1]d runs were missed, from %[2]s to %[3]s"),
		ManySkipped: oneOrMany("a run was skipped, from %[2]s to %[3]s", "%[1]d runs were skipped, from %[2]s to "+
			"%[3]s"),
		MostMissed:  "more than %d runs were missed, from %s to %s",
		MostSkipped: "more than %d runs were skipped, from %s to %s",

		MissedNotice: "The job %s was due at %s, but Parley was not running. It is too late for it now; " +
			"/cron shows more.",
		Failing: "The job %s failed three times in a row, the last time because of this: %s; /cron shows more.",
	}
}
