package bolt

import (
	"fmt"
	"time"

	"parley/store/bolt/mark"
)

// A DamagedError says that the file is not the Store that was there before. The file
// was not changed.
type DamagedError struct {
	File  string
	Cause error
	// InLog says that the log is damaged, or missing. The file itself is sound; it lacks
	// changes of about a minute: see Config.Salvage.
	InLog bool
}

// Error implements error.
func (e *DamagedError) Error() string {
	if e.InLog {
		return fmt.Sprintf("the log of %s, %s, cannot be used: %v; the file itself is sound,"+
			" and lacks the changes of about the last minute", e.File, LogOf(e.File), e.Cause)
	}
	return fmt.Sprintf("%s is damaged: %v; put a backup in its place and move %s away,"+
		" or, to start empty, move both and %s away", e.File, e.Cause, LogOf(e.File), mark.Path(e.File))
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Cause }

// An OlderError says that the file is an earlier version of the one that was used last:
// later changes would be lost, and replies be sent again. The file was not changed.
type OlderError struct {
	File  string
	Wrote time.Time // the last known change
}

// Error implements error.
func (e *OlderError) Error() string {
	return fmt.Sprintf("%s is not the file that was used last, but an older one: it lacks changes up to %s;"+
		" put the right one back, or restore this one", e.File, e.Wrote.Format(time.DateTime))
}

// A FormatError says that a newer version has written the Store. The file was not
// changed.
type FormatError struct {
	File string
	Has  int
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, and this version of Parley understands %d at most:"+
		" run the newer version, or restore a backup that this version made", e.File, e.Has, Format)
}
