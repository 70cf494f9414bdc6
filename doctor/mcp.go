package doctor

import (
	"context"
	"fmt"
	"strings"
)

// An MCPServer is one that the config names.
type MCPServer struct {
	Name    string
	Off     bool
	Command string // its program; "" if it is reached by HTTP
	Find    func(program string) error

	// State returns how it is in the gateway that runs. It is nil if none does.
	State func(context.Context) (MCPState, error)
}

// An MCPState is how a server is in a gateway.
type MCPState struct {
	Phase   string
	Problem string // why it is not connected; "" if nothing went wrong
	Changes int    // that wait for an owner
}

// Check tells what is wrong with the server: its program does not exist, it cannot be connected, or it
// offers what no owner has approved.
func (s MCPServer) Check(ctx context.Context) Finding {
	test := "parley mcp test " + s.Name
	if s.Off {
		return Finding{OK, "switched off in the config", ""}
	}
	if s.Command != "" {
		if err := s.Find(s.Command); err != nil {
			advice := "install it for the whole machine, or give its whole path as command in the config"
			return Finding{Warn, fmt.Sprintf("its program %s is not found: %v", s.Command, err), advice}
		}
	}
	if s.State == nil {
		return Finding{OK, "not connected while no gateway runs; " + test + " tries it", ""}
	}
	state, err := s.State(ctx)
	if err != nil {
		return Finding{Warn, "the gateway does not tell of it: " + err.Error(), "look at the log of the gateway"}
	}
	lines := []string{state.Phase}
	var advice []string
	if state.Problem != "" {
		lines = append(lines, state.Problem)
		advice = append(advice, test+" tries it again")
	}
	if state.Changes > 0 {
		text := "1 change waits for approval"
		if state.Changes > 1 {
			text = fmt.Sprintf("%d changes wait for approval", state.Changes)
		}
		lines = append(lines, text)
		advice = append(advice, "parley mcp approve "+s.Name+" shows the difference")
	}
	f := Finding{OK, strings.Join(lines, "\n"), strings.Join(advice, "\n")}
	if len(advice) > 0 {
		f.Status = Warn
	}
	return f
}
