package texts

// Scheduler is what is noted of scheduled jobs, and what their chats are told.
type Scheduler struct {
	Refusals Refusals

	// Why a run ended so, or why a job is off.
	Closed     string // the process ended
	Copied     string // the store is a copy, which was made while the run was under way
	Lost       string // the end of the run was never heard of
	NotAllowed string // who made the job may not talk to the agent any more
	Damaged    string // the record of the job cannot be read
	Away       string // of a job that was due once: the process did not run

	Missed, Skipped         string // one run
	ManyMissed, ManySkipped Count  // their number, the first time and the last
	MostMissed, MostSkipped Format // at least so many, the first time and the last

	MissedNotice Format // tells of a job that was due once while the process did not run: its name, the time
	Failing      Format // tells of three failures in a row: the name of the job, why the last
}

// Refusals are why a job is not run or switched on.
type Refusals struct {
	Off, Running, Past         string // the job is off; it is running; its only time has passed
	TooOften                   Format // the least seconds between two runs
	UnknownZone, UnknownFields Format // a time zone; the fields of a schedule
}
