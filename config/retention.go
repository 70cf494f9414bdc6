package config

import "time"

// Retention says how long what is stored stays (P28). 0 keeps it for ever. What has
// no key here is bounded otherwise: docs/internals/storage.md says how.
type Retention struct {
	// Conversations has what was said.
	Conversations time.Duration `json:"conversations" default:"730d" from:"7d" optional:"yes"`
	// Files has files that people sent, since they came or were last used.
	Files time.Duration `json:"files" default:"730d" from:"7d" optional:"yes"`
	// Results has long results of tools, and what files were before they were changed, of a
	// conversation since its last one. What is of the latest 32 conversations is kept at most.
	Results time.Duration `json:"results" default:"7d" from:"1d" optional:"yes"`
	// Audit has the events of the audit log.
	Audit time.Duration `json:"audit" default:"730d" from:"1d" optional:"yes"`
	// Usage has what persons used, by day.
	Usage time.Duration `json:"usage" default:"1095d" from:"40d" optional:"yes"`
	// DeadLetters has messages and replies that nobody retried or dismissed.
	DeadLetters time.Duration `json:"deadLetters" default:"365d" from:"1d" optional:"yes"`
	// Keep says what becomes of what is removed: archive writes it to text files first.
	Keep string `json:"keep" default:"nothing" allowed:"nothing, archive"`
}
