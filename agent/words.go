package agent

// What the agent says to the model. What it says to people is in package texts.
const (
	wordsNoResult    = "The task is done, without any last words."
	wordsReport      = "[Subagent '%s' %s]\n\nTask: %s\n\nResult: %s\n\nSummarize this naturally for the person in 1–2 sentences. Do not mention technical details such as subagents or their IDs."
	wordsMeantFor    = "What follows was meant for the helper '%s', which had ended."
	wordsGoOn        = "[Your answer was cut at the length limit. Go on exactly where it stopped, without repeating anything. Tool calls that were cut were not run; ask for less at a time.]"
	wordsAnswerEmpty = "[Your last answer was empty. The person sees nothing of it. Answer now, in words.]"
	wordsLastRound   = "[All rounds of tool calls are used up. Answer now with what you have, without tools, and say what is left to do.]"
	wordsNotRun      = "Error: not run, because the person stopped you."
	wordsCutOver     = "(The limit of the day ended this answer.)"
	wordsCutShort    = "(The person stopped this answer.)"
)
