package shell

import (
	"fmt"

	"parley/chat"
	"parley/tools"
)

// checkStored returns a failure if the person whom c works for has stored more than they may, and what
// commands write into work counts. A command that only removes files is let through.
func (e executor) checkStored(c tools.Call) (tools.Result, error) {
	used, limit, err := e.shell.sumStored(c)
	if err != nil || limit <= 0 || used <= limit || e.advise(c).prefix == "rm" {
		return tools.Result{}, err
	}
	return tools.Failf(tools.CodeDenied, "Nothing was run: this person's files use %.1f MB of the %.1f MB allowed. "+
		"Ask which of the files that they sent or that are in work can be deleted, do that with a command of rm "+
		"alone, and try again.", float64(used)/1e6, float64(limit)/1e6), nil
}

// sumStored counts what the person whom c works for has stored, with all that is in work, and returns how
// much they may. A limit of 0 is none, and then nothing is counted.
func (s *Shell) sumStored(c tools.Call) (used, limit int64, err error) {
	who := c.Whose()
	if who == chat.TheOwner || s.cfg.MaxStored == nil {
		return 0, 0, nil
	}
	if limit = s.cfg.MaxStored(); limit <= 0 {
		return 0, 0, nil
	}
	work, err := inWork(c.Workspace, "")
	if err != nil {
		return 0, 0, err
	}
	used, err = c.Workspace.ChargeFolder(work, string(who), who.InboxFolder())
	if err != nil {
		return 0, 0, fmt.Errorf("count what commands wrote: %w", err)
	}
	return used, limit, nil
}

// noteStored counts what a command of c has written.
func (s *Shell) noteStored(c tools.Call) {
	if _, _, err := s.sumStored(c); err != nil {
		const text = "what a command wrote does not count towards its person's limit yet"
		s.cfg.Log.Error(text, "session", c.Session, "err", err)
	}
}
