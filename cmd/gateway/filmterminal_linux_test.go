package main

import (
	"html"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/requiretest"
)

// A terminal shows a program that a person types at, as terminals of today do.
type terminal struct {
	testing.TB
	keys io.Writer
	out  lockedBuffer
	rows int // that are shown
}

// openTerminal runs a command of the program in a terminal, after it was typed at the prompt of a shell.
func (w *testGateway) openTerminal(columns, rows uint16, args ...string) *terminal {
	w.t.Helper()
	master, slave, err := openPTY()
	if err == nil {
		err = unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	}
	if err != nil {
		requiretest.Missing(w.t, "no terminal:", err)
	}
	t := &terminal{TB: w.t, keys: master, rows: int(rows)}
	_, _ = io.WriteString(&t.out, "$ parley "+strings.Join(args, " ")+"\r\n")
	cmd := w.command(args...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(&t.out, master)
	}()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = slave.Close()
		_ = master.Close()
		<-copied
	})
	return t
}

// press presses keys.
func (t *terminal) press(keys string) { _, _ = io.WriteString(t.keys, keys) }

// until waits until the terminal shows all of texts, and ends with the last of them.
func (t *terminal) until(texts ...string) {
	t.Helper()
	for late := time.After(waitTime); ; {
		out, more := t.out.next()
		lines, _, _ := readTerminal(out)
		var b strings.Builder
		for _, line := range lines {
			for _, c := range line {
				b.WriteRune(c.letter)
			}
			b.WriteByte('\n')
		}
		shown := strings.TrimRight(b.String(), " \n")
		missing := func(text string) bool { return !strings.Contains(shown, text) }
		if strings.HasSuffix(shown, texts[len(texts)-1]) && !slices.ContainsFunc(texts, missing) {
			return
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("the terminal does not show %q:\n%s\nwritten: %q", texts, shown, out)
		}
	}
}

// A cell is a place of a terminal, and how it looks: classes of the style sheet.
type cell struct {
	letter rune
	looks  string
}

// readTerminal returns what a terminal shows of out, and where the cursor is.
func readTerminal(out string) (lines [][]cell, row, column int) {
	lines = [][]cell{nil}
	looks := ""
	letters := []rune(out)
	for i := 0; i < len(letters); i++ {
		switch c := letters[i]; c {
		case '\a':
		case '\r':
			column = 0
		case '\n':
			if row++; row == len(lines) {
				lines = append(lines, nil)
			}
		case '\x1b':
			begin := i + 2 // after the [
			for i = begin; i < len(letters) && (letters[i] < '@' || letters[i] > '~'); i++ {
			}
			if i == len(letters) {
				return lines, row, column // the rest is to come
			}
			parameters := string(letters[begin:i])
			n, _ := strconv.Atoi(parameters)
			switch letters[i] {
			case 'm':
				looks = look(looks, parameters)
			case 'K':
				lines[row] = lines[row][:min(column, len(lines[row]))]
			case 'A':
				row = max(0, row-max(n, 1))
			case 'C':
				column += max(n, 1)
			case 'G':
				column = n - 1
			}
		default:
			for len(lines[row]) <= column {
				lines[row] = append(lines[row], cell{letter: ' '})
			}
			lines[row][column] = cell{c, looks}
			column++
		}
	}
	return lines, row, column
}

// look returns how text looks after another order of colours.
func look(before, order string) string {
	for code := range strings.SplitSeq(order, ";") {
		switch code {
		case "", "0":
			before = ""
		default:
			before = strings.TrimSpace(before + " c" + code)
		}
	}
	return before
}

// html returns what the terminal shows.
func (t *terminal) html() string {
	lines, row, column := readTerminal(t.out.String())
	for len(lines[row]) <= column {
		lines[row] = append(lines[row], cell{letter: ' '})
	}
	lines[row][column].looks += " cursor"
	var b strings.Builder
	b.WriteString(`<pre class="terminal">`)
	for _, line := range lines[max(0, len(lines)-t.rows):] {
		for len(line) > 0 {
			same := 1
			for same < len(line) && line[same].looks == line[0].looks {
				same++
			}
			b.WriteString(`<span class="` + line[0].looks + `">`)
			for _, c := range line[:same] {
				b.WriteString(html.EscapeString(string(c.letter)))
			}
			b.WriteString(`</span>`)
			line = line[same:]
		}
		b.WriteByte('\n')
	}
	b.WriteString(`</pre>`)
	return b.String()
}

// A terminal shows what a program wrote over itself last, in its colours, and where the cursor is.
func TestReadTerminal(t *testing.T) {
	shown := &terminal{TB: t, rows: 2}
	_, _ = io.WriteString(&shown.out, "gone\r\n\x1b[?2004hyou> what is to be done\r\x1b[K\x1b[2m✅ done <1>\x1b[0m\r\nyou> \x1b[1;36mx\x1b[1G")
	want := `<pre class="terminal"><span class="c2">✅ done &lt;1&gt;</span>` + "\n" +
		`<span class=" cursor">y</span><span class="">ou&gt; </span><span class="c1 c36">x</span>` + "\n</pre>"
	if got := shown.html(); got != want {
		t.Errorf("%q, want\n%q", got, want)
	}
}
