package store_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"parley/store"
	"parley/store/mem"
)

type cat struct {
	Name  string
	Lives int
}

func put(t *testing.T, b store.Bucket, key, body string) {
	t.Helper()
	if _, err := b.Put(t.Context(), key, []byte(body), store.Any); err != nil {
		t.Fatal(err)
	}
}

// A value can be read as it was put, and replaced only at its revision.
func TestTableGetPut(t *testing.T) {
	cats := store.NewTable(mem.New().Bucket("cats"), store.Report[cat])
	_, rev, err := cats.Get(t.Context(), "tom")
	if rev != 0 || !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("before: %d, %v", rev, err)
	}
	rev, err = cats.Put(t.Context(), "tom", cat{Name: "Tom"}, rev)
	if err != nil {
		t.Fatal(err)
	}
	if v, r, err := cats.Get(t.Context(), "tom"); v != (cat{Name: "Tom"}) || r != rev || err != nil {
		t.Errorf("Get = %v, %d, %v", v, r, err)
	}
	if _, err := cats.Put(t.Context(), "tom", cat{Name: "Kit"}, rev+1); !errors.Is(err, store.ErrConflict) {
		t.Errorf("at another revision: %v", err)
	}
}

// Concurrent updates of a value are all in it.
func TestTableUpdate(t *testing.T) {
	cats := store.NewTable(mem.New().Bucket("cats"), store.Report[cat])
	live := func(c *cat) error { c.Lives++; return nil }
	if _, _, err := cats.Update(t.Context(), "tom", live); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Update of none: %v", err)
	}
	var wg sync.WaitGroup
	for range 9 {
		wg.Go(func() {
			if _, _, err := cats.Upsert(t.Context(), "tom", live); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, before, _ := cats.Get(t.Context(), "tom")
	v, rev, err := cats.Update(t.Context(), "tom", func(c *cat) error { return store.ErrUnchanged })
	if v.Lives != 9 || rev != before || err != nil {
		t.Errorf("lives = %d at %d, want 9 at %d: %v", v.Lives, rev, before, err)
	}
	refused := errors.New("no")
	if _, _, err := cats.Update(t.Context(), "tom", func(c *cat) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
}

// A damaged value is reported, forgotten or replaced, as the table says, and
// never keeps the others from being read (P21).
func TestTableDamage(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	replace := func(key string, _ error) (cat, error) { return cat{Name: "new " + key}, nil }
	for _, tc := range []struct {
		name     string
		onDamage store.OnDamage[cat]
		names    []string // what Each yields; "!" for damage
		get      error
		kept     bool // the damaged value is left as it is
	}{
		{"report", store.Report[cat], []string{"A", "!", "C"}, store.ErrDamaged, true},
		{"forget", store.Forget[cat](log, "cat"), []string{"A", "C"}, store.ErrNotFound, false},
		{"replace", replace, []string{"A", "new b", "C"}, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, b := t.Context(), mem.New().Bucket("cats")
			put(t, b, "a", `{"Name":"A"}`)
			put(t, b, "b", `{"Name":"B"} x`)
			put(t, b, "c", `{"Name":"C"}`)
			cats := store.NewTable(b, tc.onDamage)
			var names []string
			for e, err := range cats.Each(ctx, "") {
				if errors.Is(err, store.ErrDamaged) {
					e.Value.Name = "!"
				} else if err != nil {
					t.Fatal(err)
				}
				names = append(names, e.Value.Name)
			}
			if !slices.Equal(names, tc.names) {
				t.Errorf("Each = %q, want %q", names, tc.names)
			}
			_, rev, err := cats.Get(ctx, "b")
			if !errors.Is(err, tc.get) {
				t.Errorf("Get: %v, want %v", err, tc.get)
			}
			if body, _, _ := b.Get(ctx, "b"); (string(body) == `{"Name":"B"} x`) != tc.kept {
				t.Errorf("left in the bucket: %q", body)
			}
			if _, err := cats.Put(ctx, "b", cat{Name: "B"}, rev); err != nil {
				t.Errorf("Put at the revision of Get: %v", err)
			}
		})
	}
}

// A damaged value that cannot be removed, because the disk is full, can still be replaced.
func TestTableForgetsOnFullDisk(t *testing.T) {
	b := mem.New().Bucket("cats")
	put(t, b, "tom", "?")
	cats := store.NewTable[cat](undeletable{b}, store.Forget[cat](slog.New(slog.DiscardHandler), "cat"))
	if v, _, err := cats.Upsert(t.Context(), "tom", func(c *cat) error { c.Name += "Tom"; return nil }); v.Name != "Tom" || err != nil {
		t.Errorf("Upsert = %v, %v", v, err)
	}
}

type undeletable struct{ store.Bucket }

func (undeletable) Delete(context.Context, string) error { return store.ErrFull }

// Retain removes unwanted values, and only those.
func TestTableRetain(t *testing.T) {
	ctx, b := t.Context(), mem.New().Bucket("cats")
	put(t, b, "a", `{"Lives":1}`)
	put(t, b, "b", "?")
	put(t, b, "c", `{"Lives":9}`)
	cats := store.NewTable(b, store.Report[cat])
	if err := cats.Retain(ctx, func(_ string, c cat) bool { return c.Lives > 5 }); err != nil {
		t.Fatal(err)
	}
	var left []string
	for key, err := range b.Keys(ctx, "") {
		left = append(left, key)
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(left, []string{"b", "c"}) {
		t.Errorf("left: %q", left)
	}
}
