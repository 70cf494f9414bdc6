package sandbox

import "errors"

// ErrHosts is returned by runners that cannot confine a program to the hosts of its Network.
var ErrHosts = errors.New("this sandbox cannot let a program reach some hosts only: it is all or nothing")

// ErrNoProgram is returned by runners if there is no such program.
var ErrNoProgram = errors.New("there is no such program")

// ErrNoSandbox is returned when no driver works on this machine, and config does not allow to run
// programs without one.
var ErrNoSandbox = errors.New("no sandbox works on this machine")
