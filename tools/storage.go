package tools

import (
	"fmt"

	"parley/chat"
)

// A QuotaError says that somebody would store more than they may.
type QuotaError struct{ used, added, limit int64 }

func (e *QuotaError) Error() string {
	return fmt.Sprintf("this person's files use %.1f MB of the %.1f MB allowed, and this would add %.1f MB",
		float64(e.used)/1e6, float64(e.limit)/1e6, float64(e.added)/1e6)
}

// Reserve counts bytes that c is about to write for the person it works for. It returns a QuotaError
// if they would then store more than limit returns. Owners may store anything, and so may all others
// if limit is nil or returns 0.
func Reserve(c Call, bytes int64, limit func() int64) error {
	who := c.Whose()
	if who == chat.TheOwner || limit == nil {
		return nil
	}
	most := limit()
	if most <= 0 {
		return nil
	}
	used, ok, err := c.Workspace.Reserve(string(who), who.InboxFolder(), bytes, most)
	if err != nil || ok {
		return err
	}
	return &QuotaError{used, bytes, most}
}
