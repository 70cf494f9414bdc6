package shell

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
	"parley/tools"
	"parley/tools/sandbox"
)

const (
	maxBackgroundTime = 24 * time.Hour
	maxPerSession     = 5  // commands in the background at once
	maxInAll          = 20 // those of all sessions
	retention         = 7 * 24 * time.Hour
	maxRead           = 2 << 20 // bytes of output that are read at once
	maxTold           = 3000    // characters of output in the message about a command's end
)

// A Command is the record of a command in the background.
type Command struct {
	ID      string         `json:"id"` // follows from Call
	Call    string         `json:"call"`
	Process string         `json:"process"` // of Parley, that runs it
	Session chat.SessionID `json:"session"`
	At      chat.Address   `json:"at"`
	From    chat.Sender    `json:"from"`
	Group   bool           `json:"group,omitempty"`
	Command string         `json:"command"`
	File    string         `json:"file"` // of the workspace, with its output
	Seen    int64          `json:"seen"` // bytes of the file that the model was shown

	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	State State     `json:"state"`
	Exit  int       `json:"exit"`
	// Report says that the session is still to be told of the end.
	Report bool `json:"report,omitempty"`

	Tainted bool     `json:"tainted,omitempty"` // its output may hold untrusted content (R-S12)
	Sources []string `json:"sources,omitempty"`
}

// A State says how far a Command is.
type State string

// The states of a Command.
const (
	Running     State = "running"
	Exited      State = "exited"
	TimedOut    State = "timed out"
	Exceeded    State = "ended, because it used more than it may"
	Stopped     State = "stopped"
	Interrupted State = "interrupted by a restart"
	NotRun      State = "not run"
)

// mayBeInBackground reports whether somebody can be told how a command of c ends: a person in a chat,
// and no job, subagent or client of the API.
func mayBeInBackground(c tools.Call) bool {
	return c.Depth == 0 && c.Origin != chat.FromSchedule && c.At.Channel != "api" && c.Session == c.At.Session()
}

// newCommand returns the record of a command that c runs.
func (s *Shell) newCommand(c tools.Call, in execArgs, fromNetwork bool, named tools.Result) Command {
	id := fmt.Sprintf("%.4x", sha256.Sum256([]byte("exec "+c.Key())))
	cmd := Command{
		ID: id, Call: c.Key(), Process: s.id, Session: c.Session, At: c.At, From: c.From, Group: c.Group,
		Command: in.Command, Began: time.Now(), State: Running, Report: true,
		Tainted: c.Tainted || fromNetwork || named.Tainted, Sources: chat.JoinSources(c.Sources, named.Sources...),
	}
	if fromNetwork {
		cmd.Sources = chat.JoinSources(cmd.Sources, "the output of a command that could reach the network")
	}
	return cmd
}

// errTooMany says that no more commands may run in the background.
var errTooMany = errors.New("too many commands are in the background: end one with exec_stop, or wait for it")

// runInBackground begins a command of which nobody waits for the end.
func (s *Shell) runInBackground(ctx context.Context, c tools.Call, in execArgs, r run) (tools.Result, error) {
	if !mayBeInBackground(c) {
		return tools.Result{}, errors.New("nobody could be told here how it ends: run it without background")
	}
	cmd := s.newCommand(c, in, mayReachOut(r.spec.Network), r.named)
	if err := s.record(ctx, c, &cmd); err != nil {
		return tools.Result{}, err
	}
	p, err := s.start(ctx, c, r)
	if err != nil {
		return tools.Result{}, errors.Join(err, s.commands.Delete(context.WithoutCancel(ctx), cmd.ID))
	}
	s.adopt(c, cmd, p)
	return tools.Result{Text: began(cmd.ID)}, nil
}

func began(id string) string {
	return fmt.Sprintf("The command runs in the background, with the id %s. You are told when it ends; until then "+
		"exec_status shows what it writes, and exec_stop ends it.", id)
}

// moveToBackground lets a command that takes long go on without the call.
func (s *Shell) moveToBackground(ctx context.Context, c tools.Call, in execArgs, p *process) (tools.Result, error) {
	cmd := s.newCommand(c, in, mayReachOut(p.network), p.named)
	cmd.Began = cmd.Began.Add(-waitTime)
	stdout, stderr, seen := p.output.Texts()
	cmd.Seen = seen
	if err := s.record(ctx, c, &cmd); err != nil {
		return tools.Result{}, err
	}
	if p.writing == nil && cmd.Tainted { // by hosts that it may have reached
		var err error
		if p.writing, err = s.addLateWriting(ctx, c, cmd.Began); err != nil {
			s.cfg.Log.Error("what a command writes may count as trusted", "id", cmd.ID, "err", err)
		}
	}
	s.adopt(c, cmd, p)
	text := stdout
	if stderr != "" {
		text += "\nSTDERR:\n" + stderr
	}
	return tools.Result{
		Text:    clip(text) + "\n\nIt has run for a minute. " + began(cmd.ID),
		Tainted: cmd.Tainted,
		Sources: cmd.Sources,
	}, nil
}

// record writes the record of a command that is about to be in the background, if there may be one
// more. From then on its end is told, whatever happens.
func (s *Shell) record(ctx context.Context, c tools.Call, cmd *Command) error {
	s.mu.Lock()
	n, all := 0, len(s.running)
	for _, p := range s.running {
		if p.session == c.Session {
			n++
		}
	}
	closing := s.closing
	s.mu.Unlock()
	switch {
	case closing:
		return tools.ErrClosing
	case n >= maxPerSession || all >= maxInAll:
		return errTooMany
	}
	file, err := tools.NewResult(c, "exec-"+cmd.ID, cmd.Tainted)
	if err != nil {
		return fmt.Errorf("make the file for its output: %w", err)
	}
	cmd.File = file
	if err := s.commands.Set(context.WithoutCancel(ctx), cmd.ID, *cmd); err != nil {
		return fmt.Errorf("record the command: %w", err)
	}
	return nil
}

// adopt makes p, which has a record, one of the commands in the background. If Parley is ending, it ends
// p instead and waits for it.
func (s *Shell) adopt(c tools.Call, cmd Command, p *process) {
	if err := p.keepOutput(c, cmd.File); err != nil {
		s.cfg.Log.Error("the output of a command is not kept", "id", cmd.ID, "err", err)
	}
	p.session = c.Session
	if s.isAdopted(cmd, c, p) {
		return
	}
	p.cancel(errClosing)
	s.wait(cmd, c, p)
}

// isAdopted makes p one of the commands that close ends and waits for, unless it is too late for that.
func (s *Shell) isAdopted(cmd Command, c tools.Call, p *process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.running[cmd.ID] = p
	s.work.Go(func() { s.wait(cmd, c, p) })
	return true
}

// keepOutput writes what p has written, and what it will, to a file of the workspace.
func (p *process) keepOutput(c tools.Call, name string) error {
	file, err := c.Workspace.Names().OpenLog(name)
	if err != nil {
		return err
	}
	return p.output.MoveTo(file)
}

// wait notes how a command in the background ends, and tells its session. What ends because Parley
// does is told after the next start.
func (s *Shell) wait(begun Command, c tools.Call, p *process) {
	defer close(p.noted)
	<-p.done
	p.output.Close()
	p.ended()
	p.writing.end()
	s.noteStored(c)
	id := begun.ID
	ctx := context.Background()
	s.mu.Lock()
	delete(s.running, id)
	closing := s.closing && p.outcome.End == sandbox.Cancelled
	s.mu.Unlock()
	if closing {
		return
	}
	cmd, _, err := s.commands.Update(ctx, id, func(cmd *Command) error {
		cmd.Ended = time.Now()
		cmd.State, cmd.Exit = stateOf(p)
		if cmd.State == Stopped {
			cmd.Report = false // whoever stopped it knows
		}
		return nil
	})
	if err != nil {
		s.logLost(id, err) // the next start tells of it
		return
	}
	s.tell(ctx, cmd, tail(c, cmd))
}

func (s *Shell) logLost(id string, err error) {
	if !errors.Is(err, store.ErrNotFound) { // it was forgotten
		s.cfg.Log.Error("the end of a command was not recorded", "id", id, "err", err)
	}
}

// stateOf returns how p has ended.
func stateOf(p *process) (state State, exit int) {
	switch {
	case p.err != nil:
		return NotRun, -1
	case p.outcome.End == sandbox.TimedOut:
		return TimedOut, p.outcome.Exit
	case p.outcome.End == sandbox.Cancelled:
		return Stopped, p.outcome.Exit
	case p.outcome.End == sandbox.Exceeded:
		return Exceeded, p.outcome.Exit
	}
	return Exited, p.outcome.Exit
}

// tell wakes the session of a command that has ended, once: the key of the message follows from the
// ID of the command.
func (s *Shell) tell(ctx context.Context, cmd Command, output string) {
	if !cmd.Report {
		return
	}
	if err := s.cfg.Deliver(ctx, message(cmd, output)); err != nil {
		s.cfg.Log.Error("the end of a command was not told yet", "id", cmd.ID, "err", err)
		return
	}
	_, _, err := s.commands.Update(ctx, cmd.ID, func(cmd *Command) error {
		cmd.Report = false
		return nil
	})
	if err != nil {
		s.logLost(cmd.ID, err)
	}
}

// message tells how cmd has ended.
func message(cmd Command, output string) chat.Message {
	how := string(cmd.State)
	if cmd.State == Exited {
		how = fmt.Sprintf("has ended with exit code %d", cmd.Exit)
	}
	command := chat.Clip(cmd.Command, 1000, "…")
	text := fmt.Sprintf("[The background command %s: %s]\n\nCommand: %s", cmd.ID, how, command)
	if output = strings.TrimSpace(output); output != "" {
		text += "\n\nThe end of its output:\n" + output
	}
	if cmd.State == Interrupted {
		text += "\n\nIt may have taken effect in part. It is not run again by itself."
	}
	text += "\n\nTell the person in one or two sentences how it went, and go on with what it was for."
	return chat.Message{
		ID:      "exec/" + cmd.ID,
		Account: "agent",
		At:      cmd.At,
		From:    cmd.From,
		Group:   cmd.Group,
		Text:    text,
		Time:    cmd.Ended,
		Origin:  chat.FromSubagent,
		Tainted: cmd.Tainted,
		Sources: cmd.Sources,
	}
}

// tail returns the end of what cmd has written.
func tail(c tools.Call, cmd Command) string {
	text, _, err := readFrom(c, cmd.File, -maxTold)
	if err != nil {
		return ""
	}
	return text
}

// readFrom returns what a file of the workspace holds from a byte on, or so many bytes before its
// end, and how long it is.
func readFrom(c tools.Call, name string, from int64) (text string, size int64, err error) {
	f, err := c.Workspace.Names().OpenLog(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	size = info.Size()
	if from < 0 {
		from = max(size+from, 0)
	}
	b := make([]byte, min(max(size-from, 0), maxRead))
	if _, err := f.ReadAt(b, size-int64(len(b))); err != nil {
		return "", size, err
	}
	return strings.ToValidUTF8(string(b), "\ufffd"), size, nil
}

// Run tells of the commands that an earlier process left, and forgets old ones, until ctx ends; then
// it ends those at work and waits for them. They are told of after the next start.
func (s *Shell) Run(ctx context.Context) {
	s.finishWritings(context.WithoutCancel(ctx)) // it is short
	for {
		s.tellOfEnded(ctx)
		select {
		case <-ctx.Done():
			s.close()
			return
		case <-time.After(time.Minute):
		}
	}
}

// tellOfEnded tells of each command that has ended and was not told of yet.
func (s *Shell) tellOfEnded(ctx context.Context) {
	all, err := s.all(ctx)
	if err != nil {
		s.cfg.Log.Error("commands in the background cannot be read", "err", err)
		return
	}
	for _, cmd := range all {
		s.mu.Lock()
		p := s.running[cmd.ID]
		s.mu.Unlock()
		switch {
		case p != nil:
		case cmd.State == Running && cmd.Process != s.id:
			s.interrupted(ctx, cmd.ID)
		case cmd.State == Running:
		case cmd.Report:
			s.tell(ctx, cmd, "")
		case time.Since(cmd.Ended) > retention:
			_ = s.commands.Delete(ctx, cmd.ID) // the next time, if not now
		}
	}
}

// interrupted notes and tells that Parley has ended while a command ran.
func (s *Shell) interrupted(ctx context.Context, id string) {
	cmd, _, err := s.commands.Update(ctx, id, func(cmd *Command) error {
		cmd.State = Interrupted
		cmd.Ended = time.Now()
		return nil
	})
	if err != nil {
		s.logLost(id, err)
		return
	}
	s.tell(ctx, cmd, "")
}

// close ends what runs in the background, and waits for it.
func (s *Shell) close() {
	s.mu.Lock()
	s.closing = true
	for _, p := range s.running {
		p.cancel(errClosing)
	}
	s.mu.Unlock()
	s.work.Wait()
}

// all returns the records of all commands, the oldest first.
func (s *Shell) all(ctx context.Context) (all []Command, err error) {
	for key, err := range s.commands.Keys(ctx, "") {
		if err != nil {
			return nil, err
		}
		cmd, _, err := s.commands.Get(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, cmd)
	}
	slices.SortFunc(all, func(a, b Command) int { return a.Began.Compare(b.Began) })
	return all, nil
}

// Working returns the commands of a session, or of all for "", that run in the background.
func (s *Shell) Working(ctx context.Context, id chat.SessionID) ([]Command, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the commands of %s: %w", id, err)
	}
	other := func(c Command) bool { return id != "" && c.Session != id || !s.isRunning(c.ID) }
	return slices.DeleteFunc(all, other), nil
}

func (s *Shell) isRunning(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[id] != nil
}

// Stop ends the commands of a session whose IDs begin with prefix, and returns how many there were.
// The session is not told.
func (s *Shell) Stop(session chat.SessionID, prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.running {
		if p.session == session && strings.HasPrefix(id, prefix) {
			p.cancel(errStopped)
			n++
		}
	}
	return n
}

// ForgetSession ends and forgets all commands of a session, and where its shell was.
func (s *Shell) ForgetSession(ctx context.Context, id chat.SessionID) error {
	all, err := s.all(ctx)
	if err != nil {
		return fmt.Errorf("forget the commands of %s: %w", id, err)
	}
	for _, cmd := range all {
		if cmd.Session == id {
			err = errors.Join(err, s.commands.Delete(ctx, cmd.ID))
		}
	}
	s.Stop(id, "")
	return errors.Join(err, s.states.Delete(ctx, string(id)))
}
