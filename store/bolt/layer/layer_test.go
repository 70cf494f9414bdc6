package layer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A layer holds what was put into it, in order, and never changes: With makes another one.
func TestLayer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	want := map[string]string{}
	var l *Layer
	var former []*Layer
	var formerWant []map[string]string
	for n := range 3000 {
		key := fmt.Sprint("key", random.IntN(1000))
		want[key] = fmt.Sprint(n)
		l = l.With(key, []byte(want[key]))
		if n%500 == 0 {
			former = append(former, l)
			formerWant = append(formerWant, maps.Clone(want))
		}
	}
	former = append(former, l)
	formerWant = append(formerWant, want)
	for i, l := range former {
		keys := slices.Sorted(maps.Keys(formerWant[i]))
		n := 0
		for key, val := range l.All() {
			if key != keys[n] || string(val) != formerWant[i][key] {
				t.Fatalf("layer %d: %s is %s, want %s", i, key, val, formerWant[i][key])
			}
			n++
		}
		if n != len(keys) {
			t.Errorf("layer %d has %d keys, want %d", i, n, len(keys))
		}
		for _, from := range []string{"", "key", "key3", "key500", "key99999", "z"} {
			at, _ := slices.BinarySearch(keys, from)
			found := l.Ceiling(from)
			if at == len(keys) && found != nil || at < len(keys) && (found == nil || found.Key != keys[at]) {
				t.Errorf("layer %d: ceiling of %q is %v", i, from, found)
			}
			if e := l.Find(from); e != nil && e.Key != from || e == nil && formerWant[i][from] != "" {
				t.Errorf("layer %d: find %q = %v", i, from, e)
			}
		}
	}
	if depth := depthOf(l); depth > 40 {
		t.Errorf("depth %d of 1000 keys", depth)
	}
}

func depthOf(l *Layer) int {
	if l == nil {
		return 0
	}
	return 1 + max(depthOf(l.left), depthOf(l.right))
}

// FuzzReplay: no record makes the reader panic, and what was encoded comes back.
func FuzzReplay(f *testing.F) {
	key := JoinKey("bucket", "b") + "=k"
	f.Add(Encode([]Change{{key, []byte("v")}, {key, nil}, {JoinKey("log", "l"), []byte{0, 0, 0, 0, 0, 0, 0, 7}}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		l, err := (*Layer)(nil).Replay(payload)
		if err != nil {
			return
		}
		var changes []Change
		for key, val := range l.All() {
			changes = append(changes, Change{key, val})
		}
		again, err := (*Layer)(nil).Replay(Encode(changes))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for key, val := range again.All() {
			if key != changes[n].Key || string(val) != string(changes[n].Val) || (val == nil) != (changes[n].Val == nil) {
				t.Fatalf("%q is %q, was %q", key, val, changes[n].Val)
			}
			n++
		}
	})
}
