package commands

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"

	"parley/agent"
	"parley/agent/replay"
	"parley/chat"
	"parley/host"
	"parley/store/mem"
)

// A replayer prints turns of a recording, or runs them again.
type replayer struct {
	printer replay.Printer
	turn    int  // 0: all; negative: counted from the end
	rerun   bool // run the turns again
}

// replay returns the command that prints what was recorded of a session.
func (s commands) replay() *cobra.Command {
	var v replayer
	var save string
	c := &cobra.Command{
		Use:   "replay SESSION|FILE",
		Short: "Print the turns of a conversation with all that models and tools were asked, or run them again",
		Args:  cobra.ExactArgs(1),
	}
	f := c.Flags()
	f.IntVar(&v.turn, "turn", 0, "the `number` of the only turn: 1 is the first, -1 the last")
	f.BoolVar(&v.rerun, "run", false,
		"run the turns again, with the answers and results recorded, and say what is not as it was")
	f.BoolVar(&v.printer.Requests, "requests", false, "print all that the model was shown, too")
	RequiredVar(f, &save, "save", "", "write the recording to a new `file`, which replay can read")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, stop := host.UntilSignal(c.Context(), os.Interrupt)
		defer stop()
		raw, zone, err := s.recording(ctx, args[0])
		if err != nil {
			return err
		}
		if save != "" {
			if wrote, err := host.WriteNewFile(save, raw); err != nil || !wrote {
				return cmp.Or(err, fmt.Errorf("%s is there already", save))
			}
		}
		r, err := replay.Read(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		v.printer.Out = s.config.Out
		v.printer.Zone = zone
		return v.replay(ctx, r)
	}
	return c
}

// recording reads the file of that name, or else what the gateway recorded of
// the session. The zone is that of the gateway, or of the machine.
func (s commands) recording(ctx context.Context, name string) (raw []byte, zone *time.Location, err error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		raw, err = os.ReadFile(name)
		return raw, time.Local, err
	}
	a, err := s.config.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	raw, err = a.Recording(ctx, name)
	return raw, a.Zone, errors.Join(err, a.Close())
}

// replay prints the turns that are wanted, or runs them again.
func (v *replayer) replay(ctx context.Context, r *replay.Recording) error {
	turns, err := r.Select(v.turn)
	if err != nil {
		return err
	}
	if v.rerun {
		return v.runAgain(ctx, r, turns)
	}
	printed := false
	for t := range turns {
		v.printer.Print(t)
		printed = true
	}
	if !printed {
		v.printer.PrintNone(r)
	}
	return nil
}

// runAgain runs turns of r again and prints what is not as it was.
func (v *replayer) runAgain(ctx context.Context, r *replay.Recording, turns iter.Seq[replay.Turn]) error {
	ran, different := 0, 0
	for t := range turns {
		differences, err := agent.Rerun(ctx, mem.New(), r, t)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(v.printer.Out, "turn %d: %v\n", t.N, err)
			continue
		}
		ran++
		if len(differences) == 0 {
			fmt.Fprintf(v.printer.Out, "turn %d: the same\n", t.N)
			continue
		}
		different++
		for _, d := range differences {
			fmt.Fprintf(v.printer.Out, "turn %d: %s\n", t.N, chat.OneLine(d))
		}
	}
	switch {
	case different > 0:
		return fmt.Errorf("turns that are not as they were: %d", different)
	case ran == 0:
		return errors.New("no turn was re-run")
	}
	return nil
}
