// Package layer has what a log says over a file: the last values of keys, in their order,
// as a tree that never changes, and as records of the log.
package layer

import (
	"encoding/binary"
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
)

// A Layer holds changes that are in the log and not in the file yet: what each key was
// set to last, in the order of the keys. It is a treap that never changes: a change makes
// another one, which shares all but the path to the changed key. So a reader keeps the
// layer that it began with and needs no lock. The nil Layer is empty.
//
// A key consists of the prefix of a part and a key in it (see [JoinKey]). The prefix
// alone is the key of the sequence of the part.
type Layer struct {
	Key         string
	Val         []byte // nil: the key is deleted
	priority    uint32 // not lower than that of left and right
	left, right *Layer
}

// With returns l with key set to val.
func (l *Layer) With(key string, val []byte) *Layer {
	if l == nil {
		return &Layer{Key: key, Val: val, priority: rand.Uint32()}
	}
	n := *l
	switch c := strings.Compare(key, l.Key); {
	case c == 0:
		n.Val = val
	case c < 0:
		n.left = l.left.With(key, val)
		if up := n.left; up.priority > n.priority { // up was made by the call above, and may be changed
			n.left = up.right
			up.right = &n
			return up
		}
	default:
		n.right = l.right.With(key, val)
		if up := n.right; up.priority > n.priority {
			n.right = up.left
			up.left = &n
			return up
		}
	}
	return &n
}

// Find returns the entry with key, nil if l has none.
func (l *Layer) Find(key string) *Layer {
	for l != nil && l.Key != key {
		if key < l.Key {
			l = l.left
		} else {
			l = l.right
		}
	}
	return l
}

// Ceiling returns the entry with the lowest key from key on, nil if there is none.
func (l *Layer) Ceiling(key string) (least *Layer) {
	for l != nil {
		if key <= l.Key {
			least = l
			l = l.left
		} else {
			l = l.right
		}
	}
	return least
}

// All yields all entries in order.
func (l *Layer) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) { l.visit(yield) }
}

// visit calls yield with all entries in order, until it returns false.
func (l *Layer) visit(yield func(string, []byte) bool) (more bool) {
	return l == nil || l.left.visit(yield) && yield(l.Key, l.Val) && l.right.visit(yield)
}

// Over returns lower with the entries of l over it.
func (l *Layer) Over(lower *Layer) *Layer {
	if lower == nil {
		return l
	}
	for key, val := range l.All() {
		lower = lower.With(key, val)
	}
	return lower
}

// Parts returns the parts of l, each as a Layer.
func (l *Layer) Parts() (all []*Layer) {
	var prefix string
	for key, val := range l.All() {
		top, name, _, _ := SplitKey(key)
		if p := JoinKey(top, name); p != prefix {
			prefix = p
			all = append(all, nil)
		}
		all[len(all)-1] = all[len(all)-1].With(key, val)
	}
	return all
}

// A Change sets a key of a Layer.
type Change struct {
	Key string
	Val []byte // nil: deletes it
}

// Encode returns the payload of a record of the log: of each change, the length of
// the key, the key, the length of the value and 1, and the value. A deleted key has 0 in
// the place of that length.
func Encode(changes []Change) []byte {
	size := 0
	for _, c := range changes {
		size += len(c.Key) + len(c.Val) + 2*binary.MaxVarintLen32
	}
	b := make([]byte, 0, size)
	for _, c := range changes {
		b = binary.AppendUvarint(b, uint64(len(c.Key)))
		b = append(b, c.Key...)
		if c.Val == nil {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(c.Val))+1)
		b = append(b, c.Val...)
	}
	return b
}

var errRecord = errors.New("a record of the log makes no sense")

// Replay returns l with the changes of a record over it.
func (l *Layer) Replay(payload []byte) (*Layer, error) {
	for len(payload) > 0 {
		key, rest, err := cutBytes(payload, 0)
		if err != nil {
			return nil, err
		}
		if _, _, _, err := SplitKey(string(key)); err != nil {
			return nil, err
		}
		payload = rest
		if len(payload) > 0 && payload[0] == 0 {
			l = l.With(string(key), nil)
			payload = payload[1:]
			continue
		}
		val, rest, err := cutBytes(payload, 1)
		if err != nil {
			return nil, err
		}
		l = l.With(string(key), append([]byte{}, val...))
		payload = rest
	}
	return l, nil
}

// cutBytes returns the bytes at the beginning of b, whose length comes first and is too
// large by extra.
func cutBytes(b []byte, extra uint64) (val, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n < extra || n-extra > uint64(len(b)-size) {
		return nil, nil, errRecord
	}
	b = b[size:]
	return b[:n-extra], b[n-extra:], nil
}

// JoinKey returns the prefix of the keys of a part in a layer. No prefix begins another.
func JoinKey(top, name string) string {
	b := make([]byte, 0, len(top)+len(name)+5)
	b = append(b, top...)
	b = append(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
	return string(append(b, name...))
}

// SplitKey returns the part and the key in it that key of a layer stands for. The key in
// the part is empty if it is the sequence.
func SplitKey(key string) (top, name, k string, err error) {
	top, rest, ok := strings.Cut(key, "\x00")
	if !ok || len(rest) < 4 || top == "" {
		return "", "", "", errRecord
	}
	n := binary.BigEndian.Uint32([]byte(rest[:4]))
	rest = rest[4:]
	if uint64(n) > uint64(len(rest)) {
		return "", "", "", errRecord
	}
	return top, rest[:n], rest[n:], nil
}
