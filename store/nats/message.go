package nats

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"

	client "github.com/nats-io/nats.go"

	"parley/store"
)

// The headers of our messages. A value, a record and a piece of work are each a message, its head, or several if they
// are large: then pieces come before the head.
const (
	headerWrite  = "Parley-Write"  // who wrote this: a text that no other write has
	headerSum    = "Parley-Sum"    // of a head: the checksum of its subject, its number and all its bytes
	headerNumber = "Parley-Number" // the number of a record
	headerName   = "Parley-Name"   // the last name in the subject, escaped
	headerLong   = "Parley-Long"   // the name of a bucket, log or queue, escaped, if the subject has only its hash
	headerPieces = "Parley-Pieces" // of a head: how many pieces it has; missing: none
	headerKind   = "Parley-Kind"   // missing: a head
	headerPushed = "Parley-Pushed" // of an id: when it was pushed, in nanoseconds
)

// The kinds of messages that are no heads.
const (
	kindPiece = "piece"
	kindGone  = "gone" // the key was deleted, or the lock let go, or there are no records up to that number
)

// pieceSize is how much of a value a message has at most, in bytes. Servers take messages of 1 MiB if they were not
// told otherwise, headers included.
const pieceSize = 512 << 10

// A message is a message of a stream.
type message struct {
	subject string
	seq     uint64 // in the stream
	header  client.Header
	body    []byte
}

func (m message) kind() string   { return m.header.Get(headerKind) }
func (m message) write() string  { return m.header.Get(headerWrite) }
func (m message) number() uint64 { return m.numberIn(headerNumber) }
func (m message) pieces() uint64 { return m.numberIn(headerPieces) }
func (m message) isPiece() bool  { return m.kind() == kindPiece }
func (m message) isGone() bool   { return m.kind() == kindGone }

func (m message) numberIn(header string) uint64 {
	n, _ := strconv.ParseUint(m.header.Get(header), 10, 64)
	return n
}

// check returns ErrDamaged unless body is what the head m was written with.
func (m message) check(body []byte) error {
	want, err := strconv.ParseUint(m.header.Get(headerSum), 16, 32)
	if err != nil || uint32(want) != checksum(m.subject, m.number(), body) {
		return fmt.Errorf("message %d of %s: %w", m.seq, m.subject, store.ErrDamaged)
	}
	return nil
}

// checksum is over a value and its place. Servers check what they read from their disks, too; this finds what went
// wrong anywhere between the one who wrote the value and the one who reads it.
func checksum(subject string, number uint64, body []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, []byte(subject))
	sum = crc32.Update(sum, table, binary.BigEndian.AppendUint64(nil, number))
	return crc32.Update(sum, table, body)
}

// newWriteID returns an id for a write.
func newWriteID() string { return rand.Text() }

// newHead returns the messages of a value: its pieces, if it is large, and its head. subjectOf names the subject of
// piece i, counted from 0.
func newHead(subject string, number uint64, body []byte, write string, subjectOf func(i int) string) []*client.Msg {
	var msgs []*client.Msg
	sum := checksum(subject, number, body)
	pieces := slices.Collect(slices.Chunk(body, pieceSize))
	for i := range max(len(pieces)-1, 0) {
		piece := newMessage(subjectOf(i), kindPiece, write, pieces[i])
		setNumber(piece, headerNumber, number)
		msgs = append(msgs, piece)
	}
	var rest []byte
	if len(pieces) > 0 {
		rest = pieces[len(pieces)-1]
	}
	head := newMessage(subject, "", write, rest)
	head.Header.Set(headerSum, strconv.FormatUint(uint64(sum), 16))
	setNumber(head, headerNumber, number)
	setNumber(head, headerPieces, uint64(len(msgs)))
	return append(msgs, head)
}

// nameLong adds the name of a bucket, log or queue to a message whose subject does not have it.
func nameLong(m *client.Msg, name string) {
	if isHashed(token(name)) {
		m.Header.Set(headerLong, escape(name))
	}
}

// newMessage returns a message of that kind, a copy of body in it.
func newMessage(subject, kind, write string, body []byte) *client.Msg {
	m := client.NewMsg(subject)
	m.Data = slices.Clone(body)
	m.Header.Set(headerWrite, write)
	if kind != "" {
		m.Header.Set(headerKind, kind)
	}
	return m
}

// setNumber sets a header, which is left out for 0.
func setNumber(m *client.Msg, header string, n uint64) {
	if n > 0 {
		m.Header.Set(header, strconv.FormatUint(n, 10))
	}
}
