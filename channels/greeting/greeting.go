// Package greeting has what a person is offered who has said nothing yet.
package greeting

// Suggestions returns what a newcomer can try first. Each is a message to the agent,
// which the demo model understands, too. None starts what goes on by itself: each turn of
// a real model costs money.
func Suggestions() []string {
	return []string{"What can you do?", "Remind me in a minute to stretch", "Write a note: buy milk"}
}
