package console

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

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

	editor *liner.State
	mode   *term.State // of the terminal, before
	r, w   *os.File    // the pipe
	some   atomic.Bool // something was typed since the last Enter or Ctrl-C
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
	go k.copy(stdin) // a read from a terminal cannot be interrupted: it may last until the process ends
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
		var b bytes.Buffer
		_, _ = k.editor.WriteHistory(&b) // into memory: cannot go wrong
		err = errors.Join(err, os.WriteFile(history, b.Bytes(), 0o600))
	}
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
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
func (k *keys) copy(terminal *os.File) {
	defer k.w.Close()
	buf := make([]byte, 1024)
	for {
		n, err := terminal.Read(buf)
		if len(bytes.Trim(buf[:n], ctrlC+"\r\n")) > 0 {
			k.some.Store(true)
		}
		if _, broken := k.w.Write(buf[:n]); broken != nil || err != nil {
			return
		}
	}
}

const ctrlC = "\x03"
