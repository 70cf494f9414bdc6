package main

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"parley/store/nats/natstest"
)

// Machines are two gateways that share a store on servers of NATS, and a workspace. The siege's is the one that answers.
type machines struct {
	*siege
	other *testGateway // stands by, or is stopped
	nats  *server.Server
	takes int // how often the other one has taken over before
	took  []time.Duration
}

// newMachines starts both. Tests with it run beside no others: a server in this process that is kept waiting for four
// seconds has a gateway end.
func newMachines(t *testing.T, chats int) *machines {
	m := &machines{nats: natstest.Start(t, natstest.Listening(t))}
	address := m.nats.ClientURL()
	shared := tempDir(t)
	m.siege = newSiege(t, "telegram", chats, func(w *testGateway) {
		w.more["store"] = map[string]any{"type": "nats", "url": address}
		w.more["workspace"] = shared
	})
	m.other = m.elsewhere()
	second := m.other
	t.Cleanup(func() {
		second.kill()
		if t.Failed() {
			t.Logf("the log of the second:\n%s", second.log.String())
		}
	})
	m.standBy()
	return m
}

// elsewhere returns a machine with the same config where no gateway runs.
func (m *machines) elsewhere() *testGateway {
	third := m.beside()
	third.config()
	return third
}

// standBy starts the other one, which waits.
func (m *machines) standBy() {
	m.t.Helper()
	n := strings.Count(m.other.log.String(), "standing by until it ends")
	m.other.start()
	m.other.logs("standing by until it ends", n+1)
	m.takes = strings.Count(m.other.log.String(), "this one takes over")
}

// swap has the siege be of the other gateway, once that has taken over what one began to lose at that time.
func (m *machines) swap(lost time.Time) {
	m.t.Helper()
	m.other.logs("this one takes over", m.takes+1)
	m.took = append(m.took, time.Since(lost))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.testGateway, m.other = m.other, m.testGateway
}

// answered is that of the siege beside a service manager: a gateway that a slow machine keeps from NATS for seconds
// ends, and is started again.
func (m *machines) answered() {
	m.t.Helper()
	done := make(chan struct{})
	var manager sync.WaitGroup
	defer manager.Wait()
	defer close(done)
	manager.Go(func() {
		for {
			m.mu.Lock()
			p := m.proc
			m.mu.Unlock()
			select {
			case <-done:
				return
			case <-p.ended:
			}
			if !strings.Contains(m.log.String(), "could not be reached in time") {
				m.t.Error("a gateway ended by itself")
				return
			}
			m.revive()
		}
	})
	m.siege.answered()
}

// freeze stops the process of the gateway where it is, as a machine that sleeps does. It goes on when thaw is called,
// and then ends by itself.
func (m *machines) freeze() (thaw func()) {
	m.t.Helper()
	frozen := m.proc
	if err := frozen.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		m.t.Fatal(err)
	}
	return func() {
		m.t.Helper()
		if err := frozen.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			m.t.Fatal(err)
		}
		select {
		case <-frozen.ended:
		case <-time.After(waitTime):
			m.t.Fatal("a gateway that another one has taken over goes on")
		}
		if code := frozen.cmd.ProcessState.ExitCode(); code != exitFailure {
			m.t.Errorf("it ended with %d", code)
		}
	}
}

// What one gateway leaves another one finishes: nothing is lost, and nothing done twice, whether the first was killed,
// told to end, or stood still and comes back.
func TestTakeOver(t *testing.T) {
	m := newMachines(t, 2)
	t.Run("commands where it stands by", func(t *testing.T) {
		if out, code := m.other.run("", "health"); code != 0 || !strings.HasPrefix(out, "stands by: process ") {
			t.Errorf("health ends with %d: %s", code, out)
		}
		for _, w := range []*testGateway{m.testGateway, m.other} { // wherever it is asked, the one that answers does
			out, code := w.run("", "status")
			for _, each := range []string{"answers", "stands by"} {
				row := regexp.MustCompile(`(?m)^` + each + ` +process \d+ on .* since .*127\.0\.0\.1:\d+$`)
				if n := len(row.FindAllString(out, -1)); n != 1 || code != 0 {
					t.Errorf("status ends with %d, and has %d rows of what %s: %s", code, n, each, out)
				}
			}
		}
		if out := m.other.status(); !strings.Contains(out, "messages not answered yet: 0") {
			t.Errorf("chat says %s", out)
		}
		if out, _ := m.other.run("", "doctor"); !strings.Contains(out, "stands by while another one answers: process ") {
			t.Errorf("doctor says %s", out)
		}
		m.run("", "backup", filepath.Join(t.TempDir(), "b")) // which only a file has
		if said := m.log.String(); !strings.Contains(said, "only a store that is a file can be copied: use") || strings.Contains(said, "internal error") {
			t.Errorf("backup: %s", said)
		}
		if out, code := m.run("", "health"); code != 0 || strings.Contains(out, "stands by") {
			t.Errorf("where one answers health ends with %d: %s", code, out)
		}
	})
	t.Run("commands where none runs", func(t *testing.T) {
		third := m.elsewhere()
		began := time.Now()
		out, code := third.run("", "status")
		if !strings.Contains(out, "up since") || !strings.Contains(out, "stands by") || code != 0 {
			t.Errorf("status ends with %d: %s", code, out)
		}
		if out, code := third.run("", "link", "bob"); code != 0 || !strings.Contains(out, m.base()) {
			t.Errorf("link ends with %d: %s", code, out)
		}
		if out := third.status(); !strings.Contains(out, "messages not answered yet: 0") {
			t.Errorf("chat says %s", out)
		}
		if took := time.Since(began); took > 15*time.Second { // a command that opens the store gives up after 20
			t.Errorf("that took %v", took)
		}
		if _, err := os.Stat(filepath.Join(third.dir, "lock")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a command had the data folder for itself: %v", err)
		}
		if out, code := third.run("", "health"); code != exitFailure {
			t.Errorf("health ends with %d: %s", code, out)
		}
	})
	t.Run("commands that need the data for themselves", func(t *testing.T) {
		folder := tempDir(t)
		file := filepath.Join(folder, "file.json")
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		third := m.elsewhere()
		for _, w := range []*testGateway{m.testGateway, m.other, third} {
			said := len(w.log.String())
			began := time.Now()
			_, code := w.run("", "store", "copy", file)
			text := w.log.String()[said:]
			if code != exitFailure || !strings.Contains(text, "stop all gateways first, on all machines: a gateway answers from the store: process ") {
				t.Errorf("store copy ends with %d: %s", code, text)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("store copy took %v", took)
			}
		}
		said := len(m.other.log.String())
		_, code := m.other.run("", "move", filepath.Join(folder, "new"))
		if text := m.other.log.String()[said:]; code != exitFailure || strings.Contains(text, "run this there") ||
			!strings.Contains(text, "stop all gateways first, on all machines: ") {
			t.Errorf("move ends with %d: %s", code, text)
		}
	})
	t.Run("the page where it stands by", func(t *testing.T) {
		v := m.other.invite("ann")
		if v.base == m.base() {
			t.Fatalf("the link leads to %s, where the other one is", v.base)
		}
		id := v.conversation()
		v.say(id, "message-1", "plain 1")
		v.reads(id, "an answer", func(lines []line) bool {
			return len(lines) > 1 && strings.HasSuffix(lines[len(lines)-1].Text, "The end.")
		})
		req, err := http.NewRequestWithContext(t.Context(), "GET", v.base, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "evil.example" // R-S2
		resp, err := v.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("by another name: %s", resp.Status)
		}
	})
	t.Run("told to end while it stands by", func(t *testing.T) {
		if code := m.other.stop(); code != 0 {
			t.Errorf("it ended with %d", code)
		}
		m.standBy()
	})
	for _, s := range []strike{
		{"killed in mid-answer", "slow", nth(1, "chunk 3")},
		{"killed after a tool", "tool", nth(2, "model asked")},
	} {
		t.Run(s.name, func(t *testing.T) {
			m.killAt(s.kill, func() { m.tell(0, s.kind); m.tell(1, "plain") })
			m.tell(0, "plain")
			m.swap(time.Now())
			m.answered()
			m.standBy()
		})
	}
	t.Run("told to end", func(t *testing.T) {
		m.tell(0, "slow")
		lost := time.Now()
		if code := m.stop(); code != 0 {
			t.Errorf("it ended with %d", code)
		}
		m.swap(lost)
		m.answered()
		m.standBy()
	})
	t.Run("asleep in mid-answer", func(t *testing.T) {
		var thaw func()
		began := make(chan bool, 1)
		m.mu.Lock()
		m.siege.kill = func(point string) bool {
			if point == "chunk 3" {
				m.siege.kill = nil
				thaw = m.freeze()
				began <- true
			}
			return false
		}
		m.mu.Unlock()
		m.tell(0, "slow")
		m.tell(1, "plain")
		<-began
		m.swap(time.Now())
		if strings.Contains(m.log.String(), "the other gateway has ended;") {
			t.Error("it says that the other one has ended, which stands still")
		}
		if out, code := m.other.run("", "health"); code != exitFailure || !strings.Contains(m.other.log.String(), "does not answer within 5s: it stands still") {
			t.Errorf("of one that stands still health ends with %d: %s", code, out)
		}
		m.tell(0, "plain")
		m.answered()
		thaw()
		m.tell(1, "plain")
		m.answered()
		if log := m.other.log.String(); !strings.Contains(log, "another one may have taken over") {
			t.Error("it does not say why it ended")
		}
	})
	m.lift()
	t.Run("health without servers", func(t *testing.T) {
		m.standBy()
		m.nats.Shutdown()
		for _, w := range []*testGateway{m.other, m.testGateway} {
			if out, code := w.run("", "health"); code != exitFailure {
				t.Errorf("health ends with %d: %s", code, out)
			}
		}
		if said := m.other.log.String(); !strings.Contains(said, "cannot reach the servers of its store: there is no connection to NATS at 127.0.0.1:") {
			t.Errorf("the one that stands by says %s", said)
		}
	})
	t.Logf("it took %v", m.took)
}

// Over many takings over, each message is answered once, and in order (P1, P5, P6, P9).
func TestTortureTakeOver(t *testing.T) {
	rnd := seeded(t)
	m := newMachines(t, 3)
	m.slow = 30 * time.Millisecond
	talk := func() { m.talk(rnd) }
	for range bouts(3, 200) {
		var thaw func()
		switch rnd.IntN(4) {
		case 0:
			talk()
			lost := time.Now()
			thaw = m.freeze()
			m.swap(lost)
		case 1:
			talk()
			lost := time.Now()
			m.stop()
			m.swap(lost)
		default:
			m.killAt(sometime(rnd), talk)
			m.swap(time.Now())
		}
		talk()
		m.answered()
		if thaw != nil {
			thaw()
		}
		m.standBy()
	}
	m.lift()
	slices.Sort(m.took)
	t.Logf("%d takings over, %v messages; half of them took %v, the longest %v", len(m.took), m.asked, m.took[len(m.took)/2], m.took[len(m.took)-1])
}
