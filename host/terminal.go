package host

import (
	"io"

	"golang.org/x/term"
)

// IsTerminal reports whether a person reads what is written to w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
