package mcp

import (
	"slices"
	"strings"
	"time"

	"parley/chat"
)

// A State says how a server is.
type State struct {
	Server string
	Who    chat.Person // whose connection it is; "" unless each person has one
	Phase  Phase
	Since  time.Time // when Phase began

	Tools     int    // that are offered, resources and prompts included
	Withheld  int    // that are not, because Config.Review withholds them
	Protocol  string // "" before the first connection
	PID       int    // of its program, or of what confines it; 0 if none is running
	LastError string // why the last connection ended, or none was made; "" if nothing went wrong
	NextTry   time.Time
	Stderr    []string // the last lines that the program wrote there

	Calls    int
	Failures int           // of Calls, those that did not get a result
	Latency  time.Duration // of a call, on average, without the time in which people were asked
	LastCall time.Time
}

// A Phase is how far the connection of a server is.
type Phase string

// The phases of a connection.
const (
	Disabled   Phase = "disabled"   // in the config
	Idle       Phase = "not in use" // nobody uses it; it is connected when somebody does
	Connecting Phase = "connecting"
	Connected  Phase = "connected"
	Failed     Phase = "failed"         // it is tried again at State.NextTry
	SignedOut  Phase = "sign-in needed" // it is tried again when the person has signed in
	Ended      Phase = "ended"          // Parley shuts down, or config does not have it any more
)

// States returns how the servers of the config are, sorted by name and person. A server that nobody
// has used is Idle.
func (s *Servers) States() (list []State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, server := range s.used {
		found := false
		for k, v := range s.all {
			if k.server == name {
				list = append(list, v.state())
				found = true
			}
		}
		switch {
		case found:
		case server.Enabled:
			list = append(list, State{Server: name, Phase: Idle})
		default:
			list = append(list, State{Server: name, Phase: Disabled})
		}
	}
	slices.SortFunc(list, func(a, b State) int {
		return strings.Compare(a.Server+"\x00"+string(a.Who), b.Server+"\x00"+string(b.Who))
	})
	return list
}

// state returns how the server is.
func (v *supervisor) state() State {
	tools, withheld := v.offering.count()
	known, _ := v.offering.listing()
	v.mu.Lock()
	defer v.mu.Unlock()
	s := State{
		Server:   v.key.server,
		Who:      v.key.who,
		Phase:    v.phase,
		Since:    v.since,
		Tools:    tools,
		Withheld: withheld,
		Protocol: known.Protocol,
		PID:      v.pid,
		Stderr:   v.stderr.lines(),
		Calls:    v.usage.calls,
		Failures: v.usage.failures,
		Latency:  v.usage.took / time.Duration(max(v.usage.calls, 1)),
		LastCall: v.usage.last,
	}
	if v.phase == Failed {
		s.NextTry = v.nextTry
	}
	if v.err != nil {
		s.LastError = v.err.Error()
	}
	return s
}

// usage counts calls.
type usage struct {
	open            int // calls at work
	calls, failures int
	took            time.Duration // all calls together
	last            time.Time
}
