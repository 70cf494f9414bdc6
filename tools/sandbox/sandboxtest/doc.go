// Package sandboxtest is the conformance suite that every driver of sandboxes must pass. Programs try to
// get out of the sandbox, to outlive their run, and to exceed their limits, as root and as an ordinary
// user.
package sandboxtest
