// Package greeting has what a person is offered who has said nothing yet.
package greeting

// Suggestions returns what a newcomer can try first. Each is a message to the agent,
// which the demo model understands, too.
func Suggestions() []string {
	return []string{"What can you do?", "Remind me in a minute to stretch", "Every 10 seconds say hi"}
}
