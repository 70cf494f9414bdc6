package agent

import (
	"fmt"
	"time"
)

// What the agent says by itself: to the person …
const (
	wordsNew          = "A new conversation. What is on your mind?"
	wordsJobGone      = "The last answer was of a scheduled job that no longer exists."
	wordsNoRetry      = "There is nothing to answer again yet."
	wordsStopped      = "(Stopped.)"
	wordsNoResult     = "The task is done, without any last words."
	wordsAgents       = "Write /agents to see the helpers at work, or /agents stop ID, /agents pause ID, /agents resume ID, /agents tell ID WORDS. The first letters of an ID are enough; all means all of yours."
	wordsNoSearch     = "Write /search and the words that you look for."
	wordsNoNews       = "There is nothing to say."
	wordsNoStop       = "There is nothing to stop."
	wordsParked       = "I crashed three times over this message, so I have put it aside. Please try again in other words, or in smaller pieces."
	wordsLater        = "I will answer by myself once it is back; you need not write again."
	wordsBack         = "(I could not reach my model when you wrote. It is back, and this is the answer.)"
	wordsPanic        = "Something went wrong inside me. The error is in my log. Please try again."
	wordsNoAnswer     = "The model answered nothing, although I asked it twice. Please try again, or put it in other words."
	wordsNoRoom       = "The model used up the length of its answer before it said anything. Please try again, or ask for less at a time."
	wordsToolFailed   = "I could not do that with %s: %s"
	wordsNoUndo       = "You may not change files here, so there is nothing that you could undo."
	wordsUndoing      = "I was interrupted while I undid that. It may be done: look before you write /undo again."
	wordsFilteredRest = "(The model's provider filtered out the rest of this answer.)"
	wordsNothingMore  = "(After that the model answered nothing, although I asked it twice.)"
	wordsFiltered     = "The model's provider filtered this answer out. Please put it in other words."
	wordsTooLong      = "(This answer reached the length limit.)"
	wordsRounds       = "I reached the maximum number of tool call iterations (%d) without completing the task. You can try breaking the task into smaller steps." // D-048
)

// … of limits …
const (
	wordsLimit     = "Today's limit for %s is reached: %s. It begins anew at midnight (%s). An owner can raise it with /raise %s." // R-S15
	wordsLow       = "%d %% of today's limit for %s is used: %s."
	wordsNoRaise   = "Only owners may raise limits."
	wordsNotRaised = "Nothing is raised: there is no such limit, or it is far away. Write /raise and whose: a person such as telegram:42, session, job and its ID, or all."
)

// … and to the model.
const (
	wordsReport      = "[Subagent '%s' %s]\n\nTask: %s\n\nResult: %s\n\nSummarize this naturally for the person in 1–2 sentences. Do not mention technical details such as subagents or their IDs."
	wordsMeantFor    = "What follows was meant for the helper '%s', which had ended."
	wordsCutResult   = "\n[… The middle of this result is left out: it is too long to be shown here. Ask for a part of it. …]\n"
	wordsGoOn        = "[Your answer was cut at the length limit. Go on exactly where it stopped, without repeating anything. Tool calls that were cut were not run; ask for less at a time.]"
	wordsAnswerEmpty = "[Your last answer was empty. The person sees nothing of it. Answer now, in words.]"
	wordsLastRound   = "[All rounds of tool calls are used up. Answer now with what you have, without tools, and say what is left to do.]"
	wordsInterrupted = "Error: interrupted while it ran. It may have taken effect: look before you do it again."
	wordsNotRun      = "Error: not run, because the person stopped you."
	wordsCutOver     = "(The limit of the day ended this answer.)"
	wordsOlder       = "[More was said before. What is not told here is found with memory_search.]"
	wordsSummed      = "[What was said before, summed up by you:]\n"
	wordsCutShort    = "(The person stopped this answer.)"
)

// wordsTooOld is the notice that n messages waited longer than age.
func wordsTooOld(n int, age time.Duration) string {
	if n == 1 {
		return fmt.Sprintf("I was away, and your message is more than %s old. I have read it; say so if you still want an answer.", span(age))
	}
	return fmt.Sprintf("I was away, and your %d messages are more than %s old. I have read them; say so if you still want an answer.", n, span(age))
}

// span returns d as people say it.
func span(d time.Duration) string {
	for _, u := range []struct {
		d    time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch n := int(d / u.d); {
		case n == 1 && u.d == time.Hour:
			return "an hour"
		case n == 1:
			return "a " + u.name
		case n > 1:
			return fmt.Sprintf("%d %ss", n, u.name)
		}
	}
	return "a moment"
}
