package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/store/nats"
	"parley/store/nats/natstest"
)

// A fleet is three gateways that share a store on three servers of NATS, all of them processes of their own, with a
// network between each two. A service manager starts a gateway again that has ended.
type fleet struct {
	*siege
	gateways []*managed
	servers  []*natstest.Member

	mu        sync.Mutex // guards these two
	answering *managed   // which has begun to answer last
	begun     int        // how often one of them has

	took []time.Duration // from a blow to the one that answered until one has begun to answer
}

// A managed gateway is started again when it ends.
type managed struct {
	*testGateway
	network []*natstest.Proxy // to each of the servers

	mu sync.Mutex // guards the process
}

func newFleet(t *testing.T, chats int) *fleet {
	f := &fleet{servers: natstest.StartMembers(t)}
	awaitServers(t, f.servers)
	shared := tempDir(t)
	connect := func(w *testGateway) *managed {
		m := &managed{testGateway: w}
		var addresses []string
		for _, s := range f.servers {
			p := natstest.StartProxy(t, fmt.Sprint("127.0.0.1:", s.Port))
			m.network = append(m.network, p)
			addresses = append(addresses, p.Address())
		}
		w.more = map[string]any{
			"store":     map[string]any{"type": "nats", "url": strings.Join(addresses, ","), "replicas": 3},
			"workspace": shared,
		}
		f.gateways = append(f.gateways, m)
		return m
	}
	f.siege = newSiege(t, "telegram", chats, func(w *testGateway) { connect(w) })
	w := f.siege.testGateway
	for len(f.gateways) < len(f.servers) {
		g := connect(w.beside())
		g.start()
		g.logs("standing by until it ends", 1)
	}
	f.answering = f.gateways[0]
	var managers sync.WaitGroup
	done := make(chan struct{})
	for _, g := range f.gateways {
		managers.Go(func() { g.manage(done) })
		managers.Go(func() { f.watch(g, done) })
	}
	t.Cleanup(func() { // before the processes are killed for good
		close(done)
		for i, g := range f.gateways {
			g.signal(syscall.SIGKILL)
			if t.Failed() && i > 0 {
				t.Logf("the log of gateway %d:\n%s", i, g.log.String())
			}
		}
		managers.Wait()
	})
	return f
}

// awaitServers waits until the servers have found each other: a gateway that is started before ends.
func awaitServers(t *testing.T, servers []*natstest.Member) {
	t.Helper()
	var ports []int
	for _, s := range servers {
		ports = append(ports, s.Port)
	}
	cluster := nats.Config{URL: natstest.AddressOf(ports), Replicas: len(servers)}
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	for {
		_, err := cluster.Examine(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// manage starts the gateway again whenever it ends, until done is closed.
func (g *managed) manage(done <-chan struct{}) {
	for {
		g.mu.Lock()
		p := g.proc
		g.mu.Unlock()
		<-p.ended
		select {
		case <-done:
			return
		case <-time.After(100 * time.Millisecond):
		}
		g.mu.Lock()
		g.start()
		g.mu.Unlock()
	}
}

func (g *managed) signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.proc.cmd.Process.Signal(s) // it may have ended
}

// A gateway that begins to answer prints its banner.
const banner = "\nweb       http://"

// watch notes whenever the gateway begins to answer, until done is closed.
func (f *fleet) watch(g *managed, done <-chan struct{}) {
	for n := 0; ; {
		log, more := g.log.next()
		if begun := strings.Count(log, banner); begun > n {
			f.mu.Lock()
			f.begun += begun - n
			f.answering = g
			f.mu.Unlock()
			n = begun
		}
		select {
		case <-more:
		case <-done:
			return
		}
	}
}

// state returns the gateway that answers, and how often any has begun to.
func (f *fleet) state() (answering *managed, begun int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answering, f.begun
}

// replaced waits until a gateway has begun to answer, after the one that answered was struck.
func (f *fleet) replaced(before int, struck time.Time) {
	f.t.Helper()
	for _, begun := f.state(); begun == before; _, begun = f.state() {
		if time.Since(struck) > waitTime {
			f.t.Fatal("no gateway answers")
		}
		time.Sleep(20 * time.Millisecond)
	}
	f.took = append(f.took, time.Since(struck))
}

// A blow is what happens to a fleet, and returns what ends it.
type blow struct {
	name string
	hit  func(f *fleet, answering *managed, rnd *rand.Rand) (heal func())
	// replaces says that a gateway begins to answer.
	replaces bool
	// lasts says that it takes half a minute where there is time.
	lasts bool
}

var blows = []blow{
	{"the gateway that answers is killed", func(_ *fleet, answering *managed, _ *rand.Rand) func() {
		answering.signal(syscall.SIGKILL)
		return nil
	}, true, false},
	{"it is told to end", func(_ *fleet, answering *managed, _ *rand.Rand) func() {
		answering.signal(syscall.SIGTERM)
		return nil
	}, true, false},
	{"it stands still", func(_ *fleet, g *managed, _ *rand.Rand) func() {
		g.signal(syscall.SIGSTOP)
		return func() { g.signal(syscall.SIGCONT) }
	}, true, true},
	{"it is cut off from the servers", func(_ *fleet, answering *managed, _ *rand.Rand) func() {
		network := answering.network
		stall(network, true)
		return func() { stall(network, false) }
	}, true, false},
	{"all gateways are killed", func(f *fleet, _ *managed, _ *rand.Rand) func() {
		for _, g := range f.gateways {
			g.signal(syscall.SIGKILL)
		}
		return nil
	}, false, false},
	{"a server is killed", func(f *fleet, _ *managed, rnd *rand.Rand) func() {
		s := f.servers[rnd.IntN(len(f.servers))]
		s.Kill()
		return func() { s.Start(f.t) }
	}, false, false},
	{"the majority of the servers is killed", func(f *fleet, _ *managed, rnd *rand.Rand) func() {
		first := rnd.IntN(len(f.servers))
		for i, s := range f.servers {
			if i != first {
				s.Kill()
			}
		}
		return func() {
			for i, s := range f.servers {
				if i != first {
					s.Start(f.t)
				}
			}
		}
	}, false, false},
	{"one server cannot be reached", func(f *fleet, _ *managed, rnd *rand.Rand) func() {
		i := rnd.IntN(len(f.servers))
		for _, g := range f.gateways {
			g.network[i].Stall(true)
		}
		return func() {
			for _, g := range f.gateways {
				g.network[i].Stall(false)
			}
		}
	}, false, false},
	{"the network is slow", func(f *fleet, _ *managed, rnd *rand.Rand) func() {
		d := time.Duration(20+rnd.IntN(100)) * time.Millisecond
		delay(f.gateways, d)
		return func() { delay(f.gateways, 0) }
	}, false, false},
}

func stall(network []*natstest.Proxy, stuck bool) {
	for _, p := range network {
		p.Stall(stuck)
	}
}

func delay(gateways []*managed, d time.Duration) {
	for _, g := range gateways {
		for _, p := range g.network {
			p.Delay(d)
		}
	}
}

// Whatever ends, stands still or cannot be reached, of gateways, servers and what is between them: each message is
// answered once, and in order (P1, P5, P6, P9).
func TestTortureCluster(t *testing.T) {
	rnd := seeded(t)
	f := newFleet(t, 3)
	f.slow = 30 * time.Millisecond
	var order []blow
	for range bouts(4, 200) {
		if len(order) == 0 { // each once before any comes again
			order = slices.Clone(blows)
			rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		b := order[0]
		order = order[1:]
		t.Log(b.name)
		f.talk(rnd)
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
		answering, before := f.state()
		struck := time.Now()
		heal := b.hit(f, answering, rnd)
		if b.replaces {
			f.replaced(before, struck)
		} else if heal != nil {
			time.Sleep(time.Duration(rnd.IntN(8000)) * time.Millisecond)
		}
		f.talk(rnd)
		if heal != nil {
			if b.lasts {
				time.Sleep(time.Until(struck.Add(time.Duration(bouts(0, 30)) * time.Second)))
			}
			heal()
		}
		f.answered()
	}
	f.lift()
	slices.Sort(f.took)
	t.Logf("%v messages; a gateway began to answer %d times, half of them within %v, 99%% within %v, the longest %v",
		f.asked, len(f.took), f.took[len(f.took)/2], f.took[len(f.took)*99/100], f.took[len(f.took)-1])
}
