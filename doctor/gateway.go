package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"

	"parley/channels/console"
	"parley/store/bolt/dirlock"
	"parley/web"
)

// A Gateway is the one that runs with the data that is checked, if any.
type Gateway struct {
	PID    int // 0: none runs; negative: one runs whose process id is unknown
	Status func(context.Context) (web.Overview, error)
	// Answers describes the gateway on another machine that answers while one stands by here; "" if none does.
	Answers string
}

// Runs reports whether a gateway runs.
func (g Gateway) Runs() bool { return g.PID != 0 }

// Check asks the gateway what its warnings are, such as another one in its workspace.
func (g Gateway) Check(ctx context.Context) Finding {
	switch {
	case g.Answers != "":
		return Finding{OK, "stands by while another one answers: " + g.Answers, ""}
	case !g.Runs():
		return Finding{OK, "does not run", ""}
	}
	text := "runs"
	if g.PID > 0 {
		text = fmt.Sprintf("runs, with process id %d", g.PID)
	}
	o, err := g.Status(ctx) // storeFinding reports err
	if warnings := append(o.Reasons, o.Warnings...); err == nil && len(warnings) > 0 {
		return Finding{Warn, strings.Join(append([]string{text}, warnings...), "\n"), "parley status tells more"}
	}
	return Finding{OK, text, ""}
}

// storeFinding asks the gateway about damage that it found in its store.
func (g Gateway) storeFinding(ctx context.Context) Finding {
	o, err := g.Status(ctx)
	if err != nil {
		text := "in use by the gateway, which does not tell of it: " + err.Error()
		return Finding{Warn, text, "look at the log of the gateway"}
	}
	if n := len(o.Damaged); n > 0 {
		text := fmt.Sprintf("entries that cannot be read: %d, the first is %s", n, o.Damaged[0])
		return Finding{Fail, text, "look at the disk; the rest works, and backups made before have what is lost"}
	}
	return Finding{OK, "in use by the gateway, which has found no damage", ""}
}

// Port checks that addr is free for the gateway, unless one runs and has it.
func (g Gateway) Port(ctx context.Context, addr string) Finding {
	if g.Runs() {
		return Finding{OK, addr + " is left to the gateway that runs", ""}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return Finding{Fail, err.Error(), "end the program that uses the port, or name another in the config"}
	}
	_ = l.Close()
	return Finding{OK, addr + " is free", ""}
}

// DefaultPort checks the address of the web page if nobody chose it. If another
// program uses it, the gateway takes another one, which is no failure.
func (g Gateway) DefaultPort(ctx context.Context, addr string) Finding {
	const advice = "end that program and start parley again, or set http.listen in the config to a free port"
	taken := addr + " is in use by another program, so the web page "
	f := g.Port(ctx, addr)
	if f.Status == Fail {
		return Finding{Warn, taken + "gets another port", advice}
	}
	if !g.Runs() {
		return f
	}
	if o, err := g.Status(ctx); err == nil && o.Page != "http://"+addr {
		return Finding{Warn, taken + "is at " + o.Page, advice}
	}
	return f
}

// GatewayPID returns the process id of the gateway that serves socket and uses dataDir:
// 0 if none does, and -1 if it is unknown. It takes no lock, which might keep a gateway
// from starting.
func GatewayPID(ctx context.Context, socket, dataDir string) int {
	if !console.Running(ctx, socket) {
		return 0
	}
	return cmp.Or(dirlock.Holder(dataDir), -1)
}
