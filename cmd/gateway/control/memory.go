package control

import (
	"context"
	"log/slog"
	"strings"

	"parley/memory"
	"parley/tools"
)

// NoteMemory returns a stage of the pipeline that has versions know in which conversation a call has changed memory
// files, and whether untrusted content was read there. It is the innermost stage: what somebody writes while
// a call waits for approval is not the call's.
func NoteMemory(versions *memory.Versions, log *slog.Logger) tools.Middleware {
	return func(tool tools.Tool) tools.Tool {
		if tool.ReadOnly {
			return tool
		}
		run := tool.Run
		tool.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
			if !namesMemory(c) {
				return run(ctx, c)
			}
			who := c.Whose()
			if err := versions.Observe(ctx, who, "", false); err != nil {
				log.Warn("origin of memory not noted", "who", who, "err", err)
			}
			r, err := run(ctx, c)
			ended := context.WithoutCancel(ctx) // what was written stays, whatever ended the turn
			if err := versions.Observe(ended, who, c.Session, c.Tainted); err != nil {
				log.Warn("origin of memory not noted", "who", who, "err", err)
			}
			return r, err
		}
		return tool
	}
}

// namesMemory reports whether the arguments of c name a memory file.
func namesMemory(c tools.Call) bool {
	args := strings.ToLower(c.Args)
	for _, name := range []string{"memory.md", "user.md", "soul.md"} {
		if strings.Contains(args, name) {
			return true
		}
	}
	return false
}
