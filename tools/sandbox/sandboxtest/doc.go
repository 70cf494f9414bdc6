// Package sandboxtest holds what every driver of sandboxes must pass: a program tries to get out of
// it, to stay, and to take more than it may. It is done as root and as an ordinary user.
package sandboxtest
