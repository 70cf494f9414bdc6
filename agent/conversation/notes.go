package conversation

import (
	"fmt"
	"strings"

	"parley/llm"
)

// Texts that stand in the conversation, for the model, in place of something else.
const (
	msgCutResult = "\n[… The middle of this result is left out: " +
		"it is too long to be shown here. Ask for a part of it. …]\n"
	MsgEarlierOmitted = "[More was said before. What is not told here is found with memory_search.]"
	msgSummary        = "[What was said before, summed up by you:]\n"
	msgGap            = "[A part of this conversation stood here. It is damaged on disk and cannot be read. " +
		"What was said and done in it is not known: look before you do something again, and say so if it matters.]"

	// msgLeft begins a line that names tools.
	msgLeft = "[The person went back to this place and left what was said since. " +
		"What was done then stays done, with these tools: "

	// msgSuspended stands for the words of a message that is suspended.
	msgSuspended = "[A message that was said here is suspended for now. " +
		"What follows, up to the next message, was done for it.]"

	// MsgInterrupted is the result of a call that was under way when the process died.
	MsgInterrupted = "Error: interrupted while it ran. It may have taken effect: look before you do it again."
)

// PoorLookup tells the model that c found nothing of use.
func PoorLookup(c llm.ToolCall) string {
	what := strings.TrimSuffix(c.Name+": "+Tip(c.Args), ": ")
	const text = "[The last lookup (%s) found nothing of use. Ask in other words, or answer with what you have.]"
	return fmt.Sprintf(text, what)
}
