package console

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/channels"
	"parley/chat"
	"parley/requiretest"
	"parley/timetest"
)

// A pty is a person at a terminal.
type pty struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	out    sink
	cmd    *exec.Cmd
	ended  chan error
	mode   unix.Termios // before the child
}

// sitDown starts a child for socket at a terminal of its own, and waits until it reads what is typed.
func sitDown(t *testing.T, socket, history string) *pty {
	t.Helper()
	p := startAtTerminal(t, socket, history)
	p.expect(prompt)
	return p
}

func startAtTerminal(t *testing.T, socket, history string) *pty {
	t.Helper()
	p := &pty{t: t, ended: make(chan error, 1)}
	var err error
	if p.master, p.slave, err = openPTY(); err != nil {
		requiretest.Missing(t, "no terminal:", err)
	}
	p.mode = p.termios()
	p.cmd = exec.CommandContext(t.Context(), os.Args[0])
	p.cmd.Env = append(os.Environ(), "PARLEY_CONSOLE_CHILD="+socket, "PARLEY_CONSOLE_HISTORY="+history, "TERM=xterm", "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.slave, p.slave, p.slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&p.out, p.master)
	}()
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		p.slave.Close()
		p.master.Close()
		<-copied
	})
	return p
}

func openPTY() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "master")
	err = errors.Join(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 60}))
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, nil, errors.Join(errno, master.Close())
	}
	return master, os.NewFile(peer, "slave"), nil
}

func (p *pty) termios() unix.Termios {
	m, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *m
}

func (p *pty) typeIn(keys string) { _, _ = io.WriteString(p.master, keys) }

// expect waits until the screen ends in want.
func (p *pty) expect(want string) {
	p.t.Helper()
	end := time.Now().Add(soon)
	for !strings.HasSuffix(p.screen(), want) {
		if time.Now().After(end) {
			p.t.Fatalf("the screen ends differently from %q:\n%s\nwritten: %q", want, p.screen(), p.out.String())
		}
		<-time.After(2 * time.Millisecond)
	}
}

// leave waits for the end of the child and checks that the terminal is as before.
func (p *pty) leave() {
	p.t.Helper()
	if err := wait(p.t, p.ended); err != nil {
		p.t.Errorf("the child ended with %v:\n%s", err, p.screen())
	}
	if now := p.termios(); now != p.mode {
		p.t.Errorf("the terminal's mode is %+v, was %+v", now, p.mode)
	}
}

// screen returns what the terminal shows, up to the end of the last row.
func (p *pty) screen() string {
	rows, row, col := [][]rune{nil}, 0, 0
	in := bufReader{bytes.NewReader([]byte(p.out.String()))}
	for {
		r, _, err := in.ReadRune()
		switch {
		case err != nil:
			var lines []string
			for _, r := range rows {
				lines = append(lines, string(r))
			}
			return strings.Join(lines, "\n")
		case r == '\r':
			col = 0
		case r == '\n':
			if row++; row == len(rows) {
				rows = append(rows, nil)
			}
		case r == 0x1b:
			switch n, cmd := in.sequence(); cmd {
			case 'K':
				rows[row] = rows[row][:min(col, len(rows[row]))]
			case 'A':
				row = max(0, row-max(n, 1))
			case 'G':
				col = n - 1
			case 'C':
				col += max(n, 1)
			}
		default:
			for len(rows[row]) <= col {
				rows[row] = append(rows[row], ' ')
			}
			rows[row][col] = r
			col++
		}
	}
}

type bufReader struct{ *bytes.Reader }

// sequence reads the rest of an escape sequence with one number.
func (r bufReader) sequence() (n int, cmd rune) {
	_, _, _ = r.ReadRune() // [
	for digits := ""; ; digits += string(cmd) {
		c, _, err := r.ReadRune()
		if c == '?' { // of a mode
			c = '0'
		}
		if err != nil || c < '0' || c > '9' {
			n, _ = strconv.Atoi(digits)
			return n, c
		}
		cmd = c
	}
}

func TestTerminalChat(t *testing.T) {
	h := open(t, Config{})
	history := filepath.Join(t.TempDir(), "history")
	p := sitDown(t, h.socket, history)
	p.typeIn("grüß gott\r")
	m := h.expectMessage("grüß gott")
	_ = h.Typing(t.Context(), here)
	p.expect("you> grüß gott\n…\nyou> ")

	r := m.Reply()
	for _, text := range []string{"# Title", "# Title\nThe quick brown fox jumps over", "# Title\nThe quick brown fox jumps over the lazy dog and over the cat. \x1bre"} {
		r.Text = text
		h.Stream(r)
	}
	p.expect("you> grüß gott\nTitle\nThe quick brown fox jumps over the lazy dog and over the\nyou> ")
	h.answer(m, "# Title\nThe quick brown fox jumps over the lazy dog and over the cat. \x1bred\x1b[31m\x1b]52;c;eA==\a")
	p.expect("you> grüß gott\nTitle\nThe quick brown fox jumps over the lazy dog and over the\ncat. red[31m]52;c;eA==\n\nyou> ")

	// What comes while the person types leaves the line as it was.
	p.typeIn("half a li")
	p.expect("you> half a li")
	h.sendUntilShown(chat.Reply{ID: "job", Text: "time for tea"})
	p.expect("eA==\n\ntime for tea\n\nyou> half a li")
	p.typeIn("ne\r")
	h.answer(h.expectMessage("half a line"), "yes")
	p.expect("you> half a line\nyes\n\nyou> ")

	p.typeIn("\x1b[A") // history
	p.expect("you> half a line")
	p.typeIn("\x15\x04") // Ctrl-U, Ctrl-D
	p.leave()
	got, err := os.ReadFile(history)
	info, _ := os.Stat(history)
	if err != nil || string(got) != "grüß gott\nhalf a line\n" || info.Mode() != 0o600 {
		t.Errorf("history %q, %v, %v", got, info.Mode(), err)
	}
}

// The answer to parley chat -m looks at a terminal as it does in a chat there.
func TestTerminalOneMessage(t *testing.T) {
	t.Setenv("PARLEY_CONSOLE_TEXT", "a note")
	h := open(t, Config{})
	p := startAtTerminal(t, h.socket, "")
	h.answer(h.expectMessage("a note"), "It is in **notes.md**, with what I was told before and what I have noted since then.")
	p.expect("It is in notes.md, with what I was told before and what I\nhave noted since then.\n")
	if !strings.Contains(p.out.String(), "\x1b[1mnotes.md") {
		t.Errorf("written: %q", p.out.String())
	}
	p.leave()
}

// Who sits at a terminal for the first time is shown what to try, and types its number.
// Afterwards a number is a number.
func TestTerminalGreets(t *testing.T) {
	h := open(t, Config{})
	history := filepath.Join(t.TempDir(), "history")
	p := sitDown(t, h.socket, history)
	p.expect("\n\n  1. What can you do?\n  2. Remind me in a minute to stretch\n  3. Write a note: buy milk\n\nyou> ")
	p.typeIn("2\r")
	h.answer(h.expectMessage("Remind me in a minute to stretch"), "yes")
	p.typeIn("2\r")
	h.answer(h.expectMessage("2"), "two")
	p.expect("two\n\nyou> ")
	p.typeIn("\x04")
	p.leave()

	p = sitDown(t, h.socket, filepath.Join(t.TempDir(), "new"))
	p.expect("buy milk\n\nyou> ")
	h.sendUntilShown(chat.Reply{ID: "ask", Text: "Shall I?\n\n1. Yes\n2. No"})
	p.expect("2. No\n\nyou> ")
	p.typeIn("1\r") // answers what was shown last
	h.answer(h.expectMessage("1"), "I will")
	p.expect("I will\n\nyou> ")
	p.typeIn("\x04")
	p.leave()

	p = sitDown(t, h.socket, history)
	if strings.Contains(p.screen(), "1.") {
		t.Errorf("greeted again: %s", p.screen())
	}
	p.typeIn("1\r")
	h.answer(h.expectMessage("1"), "one")
	p.expect("one\n\nyou> ")
	p.typeIn("\x04")
	p.leave()
}

// Several lines that are pasted are one message.
func TestTerminalPaste(t *testing.T) {
	h := open(t, Config{})
	p := sitDown(t, h.socket, "")
	p.typeIn("look: \x1b[200~one\r\n\ttwo\r\nthree\x1b[201~")
	p.expect("you> look: one⏎⇥two⏎three")
	p.typeIn("\r")
	h.answer(h.expectMessage("look: one\n\ttwo\nthree"), "seen")
	p.expect("seen\n\nyou> ")
	p.typeIn("\x04")
	p.leave()
	isOver := func(out string) bool { return strings.LastIndex(out, pasteOff) > strings.LastIndex(out, pasteOn) }
	for end := time.Now().Add(soon); !isOver(p.out.String()); <-time.After(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the terminal is asked for ever to mark what is pasted: %q", p.out.String())
		}
	}
	if out := p.out.String(); !strings.Contains(out, pasteOn) {
		t.Errorf("the terminal was not asked to mark what is pasted: %q", out)
	}
}

// Tab completes the gateway's commands.
func TestTerminalCompletes(t *testing.T) {
	h := open(t, Config{})
	if err := h.SetCommands(t.Context(), []channels.Command{{Name: "new"}, {Name: "status"}, {Name: "stop"}}); err != nil {
		t.Fatal(err)
	}
	p := sitDown(t, h.socket, "")
	p.typeIn("hi\r")
	h.answer(h.expectMessage("hi"), "hello") // the commands came before
	p.expect("hello\n\nyou> ")
	p.typeIn("/sta\t")
	p.expect("you> /status")
	p.typeIn("\r")
	h.answer(h.expectMessage("/status"), "well")
	p.expect("well\n\nyou> ")
	p.typeIn("exit\r")
	p.leave()
}

// exit and quit leave, at the terminal of a gateway that others use the second time.
func TestTerminalExit(t *testing.T) {
	h := open(t, Config{})
	p := sitDown(t, h.socket, "")
	p.typeIn("/quit\r")
	p.leave()
	t.Setenv("PARLEY_CONSOLE_SERVES", "Telegram")
	p = sitDown(t, h.socket, "")
	p.typeIn("exit\r")
	p.expect("[exit again within a minute stops Parley, which also serves Telegram]\nyou> ")
	p.typeIn("hello\r")
	h.answer(h.expectMessage("hello"), "still here")
	p.expect("still here\n\nyou> ")
	p.typeIn("quit\r")
	p.expect("serves Telegram]\nyou> ")
	p.typeIn("Exit\r")
	p.leave()
}

// The second exit counts if it comes soon after the first.
func TestExitForgotten(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := &interactiveChat{screen: screen{out: io.Discard}, alsoServes: "telegram"}
		c.handleInput(inputLine{text: "exit"})
		timetest.Sleep(time.Hour)
		c.handleInput(inputLine{text: "exit"})
		if c.left {
			t.Error("an exit counts for an hour")
		}
		c.handleInput(inputLine{text: "EXIT"})
		if !c.left {
			t.Error("two exits do not leave")
		}
	})
}

// A second Ctrl-C on an empty line counts as long as the line before it says, and no longer.
func TestCtrlCForgotten(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		press := inputLine{aborted: true, empty: true}
		for wait, leaves := range map[time.Duration]bool{time.Second: true, 50 * time.Second: true, time.Hour: false} {
			c := &interactiveChat{screen: screen{out: io.Discard}, alsoServes: "Telegram"}
			c.handleInput(press)
			timetest.Sleep(wait)
			c.handleInput(press)
			if c.left != leaves {
				t.Errorf("Ctrl-C again after %v leaves: %v", wait, c.left)
			}
		}
	})
}

func TestTerminalCtrlC(t *testing.T) {
	h := open(t, Config{})
	p := sitDown(t, h.socket, "")
	p.typeIn("count to a million\r")
	h.expectMessage("count to a million")
	p.typeIn("\x03")
	m := h.expectMessage("/stop")
	h.answer(m, "Stopped.")
	p.expect("Stopped.\n\nyou> ")
	p.typeIn("\x03") // within two seconds of the first
	p.leave()

	p = sitDown(t, h.socket, "")
	p.typeIn("I take that ba\x03")
	p.expect("you> I take that ba^C\nyou> ")
	p.typeIn("hello\r")
	h.answer(h.expectMessage("hello"), "hello")
	p.expect("hello\n\nyou> ")
	p.typeIn("\x04")
	p.leave()

	p = sitDown(t, h.socket, "")
	p.typeIn("\x03") // at an empty prompt
	p.leave()
}

// At the terminal of a gateway that others use as well, one Ctrl-C ends nothing.
func TestTerminalCtrlCServes(t *testing.T) {
	h := open(t, Config{})
	t.Setenv("PARLEY_CONSOLE_SERVES", "Telegram and the web page")
	p := sitDown(t, h.socket, "")
	p.typeIn("\x03")
	p.expect("[Ctrl-C again within a minute stops Parley, which also serves Telegram and the web page]\nyou> ")
	p.typeIn("hello\r")
	h.answer(h.expectMessage("hello"), "still here")
	p.expect("still here\n\nyou> ")
	p.typeIn("\x03")
	p.expect("Telegram and the web page]\nyou> ")
	p.typeIn("\x03")
	p.leave()
}

// P16: the end comes at once, with a line half typed, and the terminal is as it was.
func TestTerminalEndsWithProcess(t *testing.T) {
	h := open(t, Config{})
	for _, socket := range []string{h.socket, "gateway:" + filepath.Join(t.TempDir(), "s")} {
		p := sitDown(t, socket, "")
		p.typeIn("half")
		p.expect("you> half")
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		p.leave()
	}
}

// The gateway's own terminal is a client like the others.
func TestTerminalOfTheGateway(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	p := sitDown(t, "gateway:"+socket, "")
	p.typeIn("hi\r")
	p.expect("echo: hi\n\nyou> ")
	p.typeIn("ho\r")
	p.expect("echo: ho\n\nyou> ")
	var out sink
	if err := Chat(t.Context(), socket, Terminal{Text: "from afar", Out: &out}); err != nil || out.String() != "echo: from afar\n" {
		t.Errorf("Ask: %q, %v", out.String(), err)
	}
	p.expect("echo: from afar\n\nyou> ") // all see what is said in the chat
	p.typeIn("\x04")
	p.leave()
}

// The gateway restarts while a person sits there.
func TestTerminalSurvivesRestart(t *testing.T) {
	h := open(t, Config{})
	p := sitDown(t, h.socket, "")
	p.typeIn("hi\r")
	h.answer(h.expectMessage("hi"), "hello")
	p.expect("hello\n\nyou> ")
	h.stop()
	p.expect("lost; trying again]\nyou> ")
	p.typeIn("still there?\r")
	p.expect("you> still there?\nyou> ")
	h = open(t, Config{Socket: h.socket})
	h.answer(h.expectMessage("still there?"), "yes")
	p.expect("yes\n\nyou> ")
	p.typeIn("\x04")
	p.leave()
}
