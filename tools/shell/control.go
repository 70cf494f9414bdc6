package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/store"
	"parley/tools"
)

type idArgs struct {
	ID string `json:"id" jsonschema:"that of the command, as exec returned it" limit:"min=1 max=64"`
}

const (
	statusDescription = "Show what a command in the background has written since you last looked, and whether it " +
		"still runs. You are told when it ends, so there is no need to ask again and again."
	stopDescription = "End a command in the background."
)

// status returns the tool that shows a command in the background.
func (s *Shell) status() tools.Tool {
	t := tools.New("exec_status", statusDescription,
		func(ctx context.Context, c tools.Call, in idArgs) (tools.Result, error) {
			cmd, err := s.find(ctx, c, in.ID)
			if err != nil {
				return tools.Result{}, err
			}
			text, size, err := readFrom(c, cmd.File, cmd.Seen)
			if err != nil {
				return tools.Result{}, fmt.Errorf("read the output of %s: %w", cmd.ID, err)
			}
			_, _, err = s.commands.Update(context.WithoutCancel(ctx), cmd.ID, func(cmd *Command) error {
				cmd.Seen = size
				return nil
			})
			if err != nil {
				return tools.Result{}, fmt.Errorf("note how far the output of %s was read: %w", cmd.ID, err)
			}
			return tools.Result{
				Text:    describe(cmd, clip(text)),
				File:    cmd.File,
				Tainted: cmd.Tainted,
				Sources: cmd.Sources,
			}, nil
		},
	)
	t.Category = category
	t.Use = tools.Rare
	t.Who = tools.Owners
	t.MaxText = -1
	t.Aliases = idAliases()
	return t
}

func idAliases() map[string]string {
	return map[string]string{"command_id": "id", "job_id": "id", "task_id": "id", "process_id": "id", "pid": "id"}
}

// describe tells the model how far a command is, and what it has written.
func describe(cmd Command, text string) string {
	var how string
	switch {
	case cmd.State == Running:
		how = fmt.Sprintf("It has run for %v.", time.Since(cmd.Began).Round(time.Second))
	case cmd.State == Exited:
		how = fmt.Sprintf("It ended after %v.\nExit code: %d", cmd.Ended.Sub(cmd.Began).Round(time.Second), cmd.Exit)
	default:
		how = fmt.Sprintf("It ended: %s.", cmd.State)
	}
	if text = strings.TrimRight(text, "\n"); text == "" {
		return "(no new output)\n\n" + how
	}
	return text + "\n\n" + how
}

// stop returns the tool that ends a command in the background.
func (s *Shell) stop() tools.Tool {
	t := tools.New("exec_stop", stopDescription,
		func(ctx context.Context, c tools.Call, in idArgs) (tools.Result, error) {
			cmd, err := s.find(ctx, c, in.ID)
			if err != nil {
				return tools.Result{}, err
			}
			s.mu.Lock()
			p := s.running[cmd.ID]
			s.mu.Unlock()
			if p == nil {
				return tools.Result{Text: "It has ended before: " + describe(cmd, "")}, nil
			}
			p.cancel(errStopped)
			select {
			case <-p.noted:
				return tools.Result{Text: "It was ended."}, nil
			case <-ctx.Done():
				return tools.Result{}, context.Cause(ctx)
			}
		},
	)
	t.Category = category
	t.Use = tools.Rare
	t.Who = tools.Owners
	t.Aliases = idAliases()
	return t
}

// find returns a command of c's session.
func (s *Shell) find(ctx context.Context, c tools.Call, id string) (Command, error) {
	cmd, _, err := s.commands.Get(ctx, strings.ToLower(strings.TrimSpace(id)))
	if err == nil && cmd.Session == c.Session {
		return cmd, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return cmd, fmt.Errorf("look for the command %s: %w", id, err)
	}
	all, err := s.Working(ctx, c.Session)
	if err != nil {
		return Command{}, err
	}
	if len(all) == 0 {
		return Command{}, fmt.Errorf("there is no command %s; none runs in the background", id)
	}
	var ids []string
	for _, cmd := range all {
		ids = append(ids, cmd.ID)
	}
	return Command{}, fmt.Errorf("there is no command %s; in the background run %s", id, strings.Join(ids, ", "))
}
