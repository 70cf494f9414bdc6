// Package workspace is the agent's files on disk, confined to one folder.
package workspace

// A Workspace is one folder, open for as long as the Workspace is.
type Workspace struct{}
