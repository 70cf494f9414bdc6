package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/peterh/liner"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	prompt   = "you> "
	minWidth = 20 // columns; liner edits no line on less
)

// Interactive says whether a person sits at t: it is the process's own
// terminal, and one that can edit lines.
func (t Terminal) Interactive() bool {
	if t.In != os.Stdin || t.Out != os.Stdout || !term.IsTerminal(unix.Stdin) || !term.IsTerminal(unix.Stdout) {
		return false
	}
	return liner.TerminalSupported() && width() >= minWidth
}

func width() int {
	w, _, err := term.GetSize(unix.Stdout)
	if err != nil {
		return minWidth
	}
	return w
}

// keys is the keyboard. Liner reads the process's stdin and cannot be
// interrupted; so it is given a pipe, into which copy puts what is typed.
type keys struct {
	typed chan line // closed after the last
	done  chan struct{}
	live  sync.WaitGroup

	editor    *liner.State
	mode      *term.State // of the terminal, before
	in        *os.File    // the terminal
	interrupt func() bool // of a read from in
	r, w      *os.File    // the pipe
	some      atomic.Bool // something was typed since the last Enter or Ctrl-C
}

// A line is what a person typed.
type line struct {
	text  string
	abort bool // by Ctrl-C
	empty bool // nothing was typed before it
}

// openKeys takes the terminal over until close.
func openKeys(history string) (*keys, error) {
	mode, err := term.GetState(unix.Stdin)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	k := &keys{typed: make(chan line), done: make(chan struct{}), mode: mode}
	if k.r, k.w, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	if err := ignoreSignals(); err != nil {
		return nil, errors.Join(fmt.Errorf("terminal: %w", err), k.r.Close(), k.w.Close())
	}
	stdin := os.Stdin
	k.in, k.interrupt = interruptible(stdin)
	os.Stdin = k.r // liner has no other way to be told
	k.editor = liner.NewLiner()
	os.Stdin = stdin
	k.editor.SetCtrlCAborts(true)
	k.editor.SetBeep(false)
	if f, err := os.Open(history); err == nil {
		_, _ = k.editor.ReadHistory(f) // as far as it can be read
		f.Close()
	}
	k.live.Go(k.edit)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		k.copy()
	}()
	k.live.Go(func() {
		<-k.done
		if k.interrupt() { // else it is left to the end of the process
			<-copied
		}
	})
	return k, nil
}

// ignoreSignals makes Ctrl-C a key, also between two prompts.
func ignoreSignals() error {
	m, err := unix.IoctlGetTermios(unix.Stdin, getMode)
	if err != nil {
		return err
	}
	m.Lflag &^= unix.ISIG
	return unix.IoctlSetTermios(unix.Stdin, setMode, m)
}

// close gives the terminal back as it was and keeps history.
func (k *keys) close(history string) error {
	close(k.done)
	k.r.Close()
	k.live.Wait()
	k.w.Close()
	k.editor.Close()
	err := term.Restore(unix.Stdin, k.mode)
	if history != "" {
		err = errors.Join(err, k.keep(history))
	}
	return err
}

// keep writes the history, for its owner's eyes.
func (k *keys) keep(file string) error {
	f, err := os.OpenFile(file+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep history: %w", err)
	}
	_, err = k.editor.WriteHistory(f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("keep history: %w", err)
	}
	return nil
}

// edit lets the person edit one line after another.
func (k *keys) edit() {
	defer close(k.typed)
	for {
		text, err := k.editor.Prompt(prompt)
		aborted := errors.Is(err, liner.ErrPromptAborted)
		if err != nil && !aborted {
			return
		}
		if strings.TrimSpace(text) != "" {
			k.editor.AppendHistory(text)
		}
		select {
		case k.typed <- line{text: text, abort: aborted, empty: !k.some.Swap(false)}:
		case <-k.done:
			return
		}
	}
}

// copy copies what is typed until the terminal or the pipe is closed.
func (k *keys) copy() {
	defer k.w.Close()
	buf := make([]byte, 1024)
	for {
		n, err := k.in.Read(buf)
		for _, b := range buf[:n] {
			if b != ctrlC && b != '\r' && b != '\n' {
				k.some.Store(true)
			}
		}
		if _, broken := k.w.Write(buf[:n]); broken != nil || err != nil {
			return
		}
	}
}

const ctrlC = 3

// interruptible returns a way to read f, and a func that ends a Read of it, or
// says that this cannot be done. A terminal or a pipe that the process was
// started with can only be interrupted when it is opened anew, as Linux can.
func interruptible(f *os.File) (in *os.File, interrupt func() bool) {
	if f.SetReadDeadline(time.Time{}) == nil {
		return f, func() bool { return f.SetReadDeadline(time.Unix(1, 0)) == nil }
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0 {
		anew, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err == nil && anew.SetReadDeadline(time.Time{}) == nil {
			return anew, func() bool { return anew.Close() == nil }
		}
		if err == nil {
			anew.Close()
		}
	}
	return f, func() bool { return false }
}
