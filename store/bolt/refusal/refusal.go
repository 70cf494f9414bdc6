// Package refusal has the errors of a Store of package bolt that is not opened, so that nothing is lost.
package refusal

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
			" and lacks the changes of about the last minute", e.File, e.File+".wal", e.Cause)
	}
	return fmt.Sprintf("%s is damaged: %v; put a backup in its place and move %s away,"+
		" or, to start empty, move both and %s away", e.File, e.Cause, e.File+".wal", mark.Path(e.File))
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

// A LeftError says that the Store was moved into one of another type: see [Leave]. Nothing was changed.
type LeftError struct {
	File string
	To   string // the type
	Time time.Time
}

// Error implements error.
func (e *LeftError) Error() string {
	return fmt.Sprintf("what was in %s has been in a store of type %q since %s: use the config that"+
		" names that store, or bring it back with that config and parley store copy",
		e.File, e.To, e.Time.Format(time.DateTime))
}

// A FormatError says that a newer version has written the Store. The file was not
// changed.
type FormatError struct {
	File  string
	Has   int
	Knows int // the highest that this version understands
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, and this version of Parley understands %d at most:"+
		" run the newer version, or restore a backup that this version made", e.File, e.Has, e.Knows)
}

// Leave has the Store at path not be opened from now on, until another one is put there: what it had is in one of the
// type to. The caller has the lock of its folder.
func Leave(path, to string) error {
	left := mark.Mark{Left: &mark.Left{To: to, Time: time.Now()}}
	return left.Write(path, true)
}

// CheckLeft returns a [*LeftError] if the Store that was at path was moved into one of another type.
func CheckLeft(path string) error {
	m, err := mark.Read(path)
	if err != nil || m == nil || m.Left == nil {
		return err
	}
	return &LeftError{File: path, To: m.Left.To, Time: m.Left.Time}
}
