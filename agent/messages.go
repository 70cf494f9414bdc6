package agent

// What the agent says to the model. What it says to people is in package texts.
const (
	msgMeantFor = "What follows was meant for the subagent '%s', which had ended."

	msgGoOn = "[Your answer was cut at the length limit. Go on exactly where it stopped, without repeating anything. " +
		"Tool calls that were cut were not run; ask for less at a time.]"
	msgAnswerEmpty = "[Your last answer was empty. The person sees nothing of it. Answer now, in words.]"
	msgLastRound   = "[All rounds of tool calls are used up. Answer now with what you have, without tools, " +
		"and say what is left to do.]"

	msgNotRun   = "Error: not run, because the person stopped you."
	msgCutOver  = "(The limit of the day ended this answer.)"
	msgCutShort = "(The person stopped this answer.)"
)
