package memory

import (
	_ "embed" // for the texts below
)

// The instructions for models. Each is a file of its own, which can be read as the
// model reads it.
var (
	//go:embed prompts/dreaming.md
	dreamInstructions string

	//go:embed prompts/hearing.md
	hearsayInstructions string

	//go:embed prompts/summing.md
	summaryInstructions string

	// whereFormat describes the agent's surroundings. It tells authors apart by position,
	// never by a mark that a message could contain too (R-S11).
	//
	//go:embed prompts/facts.md
	whereFormat string

	// chatFormat is the last paragraph, because the text before it is the same in many
	// sessions.
	//
	//go:embed prompts/in_chat.md
	chatFormat string

	// leanInstructions take the place of the first AGENTS.md, SOUL.md and TOOLS.md in lean instructions,
	// leanWhereFormat and leanChatFormat that of whereFormat and chatFormat.
	//
	//go:embed prompts/lean.md
	leanInstructions string

	//go:embed prompts/lean_facts.md
	leanWhereFormat string

	//go:embed prompts/lean_chat.md
	leanChatFormat string
)
