package storetest_test

import (
	"slices"
	"testing"

	"parley/store"
	"parley/store/mem"
	"parley/store/storetest"
)

func TestWatch(t *testing.T) {
	var ops []string
	note := func(when string) func(string) { return func(op string) { ops = append(ops, when+op) } }
	s := storetest.Watch(mem.New(), note("before "), note("after "))
	ctx := t.Context()
	_, _ = s.Bucket("b").Put(ctx, "k", nil, 0)
	_ = s.Bucket("b").Delete(ctx, "k")
	_, _, _ = s.Bucket("b").Get(ctx, "k")
	_, _ = s.Log("session/a").Append(ctx, store.Any, nil)
	_, _ = s.Log("session/a").Append(ctx, store.Any) // it changes nothing
	_ = s.Log("session/a").Trim(ctx, 1)
	_ = s.Queue("inbox").Push(ctx, "id", nil)
	item, err := s.Queue("inbox").Pull(ctx)
	if err != nil {
		t.Fatal(err)
	}
	item.Later(0)
	_ = item.Done(ctx)
	var want []string
	for _, op := range []string{"bucket b Put", "bucket b Delete", "log session/a Append", "log session/a Trim",
		"queue inbox Push", "queue inbox Later", "queue inbox Done"} {
		want = append(want, "before "+op, "after "+op)
	}
	if !slices.Equal(ops, want) {
		t.Errorf("ops = %q\nwant %q", ops, want)
	}
}
