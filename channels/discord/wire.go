package discord

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

const (
	maxPacket = 32 << 20         // bytes of one packet of the gateway, inflated
	maxHead   = 16 << 10         // bytes of the answer that begins a websocket
	writeTime = 10 * time.Second // of one frame
)

// Why a connection to the gateway ends, besides its being closed.
var (
	errMoved    = errors.New("discord asks to connect anew")
	errInvalid  = errors.New("discord has forgotten the session")
	errGivenUp  = errors.New("the library gave the connection up")
	errNonsense = errors.New("the gateway sends nonsense")
)

// A wire is a connection to the gateway. It stands between Discord and the
// library, and lets through only what the library survives:
//
//   - A first packet that is no HELLO, and a reconnect or an ACK as the second,
//     would lock the library up for good; null would crash it.
//   - What cannot be inflated or parsed would be skipped. Here it ends the
//     connection, and the resumed session brings it again.
//   - A session closed with code 1000 is gone, so a connection that ends for
//     another reason than Run's end is cut instead.
//
// It keeps the time: a packet must come within the patience of the handshake
// until the session is ready, and an ACK within two heartbeats from then on.
// The library's own deadlines are ignored.
type wire struct {
	net.Conn
	patience time.Duration // with the handshake

	in    *bufio.Reader
	out   []byte // let through and not read yet
	head  int    // bytes of the answer that begins the websocket; below 0 when that is over
	part  []byte // packet in the making
	kind  byte   // its opcode
	count int    // packets so far
	beat  time.Duration
	next  string // where to resume, if anywhere special; to be read when ready

	ready atomic.Bool           // the session is
	over  atomic.Bool           // it has ended: nothing is written any more
	cause atomic.Pointer[error] // why
}

func newWire(conn net.Conn, patience time.Duration) *wire {
	w := &wire{Conn: conn, patience: patience, in: bufio.NewReader(conn)}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	return w
}

// SetDeadline, SetReadDeadline and SetWriteDeadline are ours alone to set.
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// Write never fails: the library would close the connection from two sides. A
// connection that cannot be written to is cut, and Read says so.
func (w *wire) Write(p []byte) (int, error) {
	if !w.over.Load() {
		_ = w.Conn.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := w.Conn.Write(p); err != nil {
			w.cut()
		}
	}
	return len(p), nil
}

// cut ends the connection without a word.
func (w *wire) cut() { _ = w.Close() }

// Close implements net.Conn.
func (w *wire) Close() error {
	w.over.Store(true)
	return w.Conn.Close()
}

// why returns what ended the connection.
func (w *wire) why() error {
	if err := w.cause.Load(); err != nil {
		return *err
	}
	return errGivenUp
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		if err := w.take(); err != nil {
			w.cause.CompareAndSwap(nil, &err)
			w.cut()
			return 0, err
		}
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

// take reads a line of the answer to the upgrade, or a frame.
func (w *wire) take() error {
	if w.head >= 0 {
		line, err := w.in.ReadSlice('\n')
		if w.head += len(line); w.head > maxHead {
			return errNonsense
		}
		w.out = bytes.Clone(line)
		if len(bytes.TrimSpace(line)) == 0 {
			w.head = -1
		}
		return err
	}
	op, payload, err := w.frame()
	switch {
	case err != nil:
		return err
	case op&0xf == 8:
		end := &refusal{status: noCode, Text: "discord closed the connection"}
		if len(payload) >= 2 {
			end.status, end.Text = int(binary.BigEndian.Uint16(payload)), end.Text+": "+strings.ToValidUTF8(string(payload[2:]), "")
		}
		return end
	case op&0xf > 2: // ping and pong
		w.out = append([]byte{op, byte(len(payload))}, payload...)
		return nil
	case op&0xf != 0:
		w.part, w.kind = nil, op&0xf
	}
	if w.part = append(w.part, payload...); len(w.part) > maxPacket {
		return errNonsense
	}
	if op&0x80 == 0 {
		return nil
	}
	return w.packet()
}

// frame reads one frame of a server, which is never masked.
func (w *wire) frame() (op byte, payload []byte, err error) {
	var h [8]byte
	if _, err = io.ReadFull(w.in, h[:2]); err != nil {
		return 0, nil, err
	}
	op, n := h[0], uint64(h[1])
	switch {
	case n == 126:
		_, err = io.ReadFull(w.in, h[:2])
		n = uint64(binary.BigEndian.Uint16(h[:]))
	case n == 127:
		_, err = io.ReadFull(w.in, h[:])
		n = binary.BigEndian.Uint64(h[:])
	case n > 127, op&0x70 != 0: // masked, or of an extension that nobody asked for
		err = errNonsense
	}
	if err == nil && (n > maxPacket || op&0x8 != 0 && n > 125) {
		err = errNonsense
	}
	if err != nil {
		return 0, nil, err
	}
	payload = make([]byte, 0, min(n, 64<<10)) // what is only announced takes no memory
	buf := bytes.NewBuffer(payload)
	_, err = io.CopyN(buf, w.in, int64(n))
	return op, buf.Bytes(), err
}

// A packet is what the gateway says.
type packet struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
}

// packet checks the packet that is complete now, and lets it through.
func (w *wire) packet() error {
	raw := w.part
	w.part = nil
	if w.kind == 2 {
		z, err := zlib.NewReader(bytes.NewReader(raw))
		if err == nil {
			raw, err = io.ReadAll(io.LimitReader(z, maxPacket))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errNonsense, err)
		}
	}
	var p packet
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Unmarshal(raw, &p) != nil {
		return errNonsense
	}
	if err := w.check(&p); err != nil {
		return err
	}
	raw, err := json.Marshal(p)
	w.out = frameOf(raw)
	return err
}

// The kinds of packets.
const (
	opEvent     = 0
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

// check says whether the library can be given p, and makes it so.
func (w *wire) check(p *packet) error {
	w.count++
	if (w.count == 1) != (p.Op == opHello) || w.count == 2 && p.Op == opAck {
		return fmt.Errorf("%w: packet %d is an op %d", errNonsense, w.count, p.Op)
	}
	switch p.Op {
	case opHello:
		var d struct {
			Every int64 `json:"heartbeat_interval"` // milliseconds
		}
		if json.Unmarshal(p.Data, &d) != nil || d.Every < 1 || d.Every > int64(time.Hour/time.Millisecond) {
			return fmt.Errorf("%w: a HELLO without a heartbeat", errNonsense)
		}
		w.beat = time.Duration(d.Every) * time.Millisecond
	case opReconnect:
		return errMoved
	case opInvalid:
		var resumable bool
		if _ = json.Unmarshal(p.Data, &resumable); resumable {
			return errMoved
		}
		return errInvalid
	case opAck:
		w.alive()
	case opEvent:
		return w.event(p)
	}
	return nil
}

// alive gives the next ACK two heartbeats.
func (w *wire) alive() {
	if w.ready.Load() {
		_ = w.Conn.SetReadDeadline(time.Now().Add(2 * w.beat))
	}
}

// event makes of p what the library hands over as it came: in lower case it
// does not know the type, and so does not decode it, which could crash it. READY it must
// know, and gets only what it needs.
func (w *wire) event(p *packet) error {
	switch p.Type {
	case "READY":
		var d struct {
			Session string `json:"session_id"`
			Next    string `json:"resume_gateway_url"`
			User    struct {
				ID string `json:"id"`
			} `json:"user"`
		}
		if json.Unmarshal(p.Data, &d) != nil || d.Session == "" {
			return fmt.Errorf("%w: a READY without a session", errNonsense)
		}
		w.next = d.Next
		d.Next = ""
		p.Data, _ = json.Marshal(d)
	case "RESUMED":
		p.Data = json.RawMessage("{}")
	default:
		p.Type = strings.ToLower(p.Type)
		return nil
	}
	w.ready.Store(true)
	w.alive()
	return nil
}

// frameOf returns a text frame.
func frameOf(payload []byte) []byte {
	const text, whole = 1, 0x80
	f := []byte{whole | text}
	switch n := len(payload); {
	case n < 126:
		f = append(f, byte(n))
	case n < 1<<16:
		f = binary.BigEndian.AppendUint16(append(f, 126), uint16(n))
	default:
		f = binary.BigEndian.AppendUint64(append(f, 127), uint64(n))
	}
	return append(f, payload...)
}
