package endpoints

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"parley/store"
	"parley/web"
)

// newInstance describes this process, which begins to do that now, and whose page is at that address.
func newInstance(state, version, page string) web.Instance {
	host, _ := os.Hostname() // "" is as good
	name := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	return web.Instance{Name: name, State: state, Version: version, Since: time.Now(), Page: page}
}

// announce tells the gateway that answers of s, for as long as ctx goes on.
func announce(ctx context.Context, s web.Instance, dial store.Dial) {
	for ctx.Err() == nil {
		_ = announceOnce(ctx, s, dial) // which gateway answers may be about to change
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// announceOnce tells one gateway of s until the connection ends.
func announceOnce(ctx context.Context, s web.Instance, dial store.Dial) error {
	conn, err := dial(ctx, standby, store.Caller{At: s.Page})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := json.NewEncoder(conn).Encode(s); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// maxStandby is how long what a gateway says of itself may be, in bytes.
const maxStandby = 4 << 10

// Standbys know which gateways stand by. The zero value knows of none.
type Standbys struct {
	mu  sync.Mutex
	all map[net.Conn]web.Instance
}

// Serve takes in what gateways that stand by announce, until l is closed.
func (s *Standbys) Serve(l net.Listener) {
	var open sync.WaitGroup
	defer open.Wait()
	defer s.closeAll()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.set(conn, web.Instance{})
		open.Go(func() { s.keep(conn) })
	}
}

// keep knows of one for as long as it is connected.
func (s *Standbys) keep(conn net.Conn) {
	defer conn.Close()
	defer s.remove(conn)
	var one web.Instance
	if err := json.NewDecoder(io.LimitReader(conn, maxStandby)).Decode(&one); err != nil {
		return
	}
	one.State = web.StandsBy // whatever it says
	s.set(conn, one)
	_, _ = io.Copy(io.Discard, conn)
}

func (s *Standbys) set(conn net.Conn, one web.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[net.Conn]web.Instance{}
	}
	s.all[conn] = one
}

func (s *Standbys) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, conn)
}

func (s *Standbys) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.all {
		conn.Close()
	}
}

// List returns those that stand by, who has waited longest first.
func (s *Standbys) List() (all []web.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.Name != "" { // it has said who it is
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b web.Instance) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
	return all
}
