package memory

import (
	_ "embed" // for the texts below
)

// What models are told. Each text is one file, so that it can be read as the
// model reads it.
var (
	//go:embed prompts/dreaming.md
	dreamInstructions string

	//go:embed prompts/hearing.md
	hearsayInstructions string

	//go:embed prompts/summing.md
	summaryInstructions string

	// whereFormat is what the agent could not guess of where it is. Who wrote what is
	// told by position, never by a mark that a message could hold too (R-S11).
	//
	//go:embed prompts/facts.md
	whereFormat string

	// chatFormat is the last paragraph: what comes before it is the same in many
	// sessions.
	//
	//go:embed prompts/in_chat.md
	chatFormat string
)
