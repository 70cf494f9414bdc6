package scheduler

// Valid says what is wrong with text as the five fields of a cron schedule.
func Valid(text string) error {
	_, _, err := parse(text)
	return err
}
