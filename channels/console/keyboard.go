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
	minWidth = 20 // columns that liner needs to edit a line
)

// Interactive reports whether t is the process's own terminal and can edit lines,
// so that a person can sit at it.
func (t Terminal) Interactive() bool {
	if t.In != os.Stdin || t.Out != os.Stdout || !term.IsTerminal(unix.Stdin) || !term.IsTerminal(unix.Stdout) {
		return false
	}
	return liner.TerminalSupported() && width(unix.Stdout) >= minWidth
}

// width returns how many columns the terminal has that is open there, minWidth if that is not known.
func width(descriptor int) int {
	w, _, err := term.GetSize(descriptor)
	if err != nil {
		return minWidth
	}
	return w
}

// A keyboard reads lines that a person edits. Liner reads the process's stdin and
// cannot be interrupted; so it is given a pipe, into which copyInput writes what
// is typed.
type keyboard struct {
	typed   chan inputLine // closed after the last line
	done    chan struct{}
	editing sync.WaitGroup

	editor         *liner.State
	mode           *term.State // of the terminal before it was taken over
	pipeReader     *os.File
	pipeWriter     *os.File
	typedSomething atomic.Bool // something was typed since the last Enter or Ctrl-C
	commands       atomic.Pointer[[]string]
}

// complete returns the commands that begin with line.
func (k *keyboard) complete(line string) (found []string) {
	commands := k.commands.Load()
	if commands == nil || !strings.HasPrefix(line, "/") {
		return nil
	}
	for _, name := range *commands {
		if strings.HasPrefix("/"+name, line) {
			found = append(found, "/"+name)
		}
	}
	return found
}

// An inputLine is what a person typed.
type inputLine struct {
	text    string
	aborted bool // with Ctrl-C
	empty   bool // nothing had been typed when it ended
}

// openKeyboard takes over the terminal until close.
func openKeyboard(history string) (*keyboard, error) {
	mode, err := term.GetState(unix.Stdin)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	k := &keyboard{typed: make(chan inputLine), done: make(chan struct{}), mode: mode}
	if k.pipeReader, k.pipeWriter, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	if err := ignoreSignals(); err != nil {
		return nil, errors.Join(fmt.Errorf("terminal: %w", err), k.pipeReader.Close(), k.pipeWriter.Close())
	}
	stdin := os.Stdin
	os.Stdin = k.pipeReader // liner has no other way to set its input
	k.editor = liner.NewLiner()
	os.Stdin = stdin
	k.editor.SetCtrlCAborts(true)
	k.editor.SetBeep(false)
	k.editor.SetCompleter(k.complete)
	k.editor.SetTabCompletionStyle(liner.TabPrints)
	fmt.Print(pasteOn)
	readHistory(k.editor, history)
	k.editing.Go(k.editLines)
	go k.copyInput(stdin) // it may run until the process ends: a read from a terminal cannot be interrupted
	return k, nil
}

// readHistory reads the lines of earlier chats from the file history, if it can.
func readHistory(editor *liner.State, history string) {
	f, err := os.Open(history)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = editor.ReadHistory(f)
}

// ignoreSignals makes Ctrl-C an ordinary key, also between two prompts.
func ignoreSignals() error {
	m, err := unix.IoctlGetTermios(unix.Stdin, getMode)
	if err != nil {
		return err
	}
	m.Lflag &^= unix.ISIG
	return unix.IoctlSetTermios(unix.Stdin, setMode, m)
}

// close restores the mode of the terminal and writes the history file.
func (k *keyboard) close(history string) error {
	close(k.done)
	k.pipeReader.Close()
	k.editing.Wait()
	fmt.Print(pasteOff)
	k.pipeWriter.Close()
	k.editor.Close()
	err := term.Restore(unix.Stdin, k.mode)
	if history != "" {
		var b bytes.Buffer
		_, _ = k.editor.WriteHistory(&b) // writing to memory does not fail
		err = errors.Join(err, os.WriteFile(history, b.Bytes(), 0o600))
	}
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// editLines has the person edit one line after another.
func (k *keyboard) editLines() {
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
		case k.typed <- inputLine{text: unfold(text), aborted: aborted, empty: !k.typedSomething.Swap(false)}:
		case <-k.done:
			return
		}
	}
}

// copyInput copies what is typed into the pipe until the terminal or the pipe is
// closed.
func (k *keyboard) copyInput(terminal *os.File) {
	defer k.pipeWriter.Close()
	buf := make([]byte, 1024)
	var paste pasteFilter
	for {
		n, err := terminal.Read(buf)
		typed := paste.translate(buf[:n])
		if len(bytes.Trim(typed, ctrlC+"\r\n")) > 0 {
			k.typedSomething.Store(true)
		}
		if _, broken := k.pipeWriter.Write(typed); broken != nil || err != nil {
			return
		}
	}
}

const ctrlC = "\x03"
