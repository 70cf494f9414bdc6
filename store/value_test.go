package store_test

import (
	"errors"
	"testing"

	"parley/store"
	"parley/store/mem"
)

// A value is there as it was saved; what makes no sense is damaged (P21).
func TestLoadSave(t *testing.T) {
	type cat struct{ Name string }
	b := mem.New().Bucket("cats")
	if _, _, err := store.Load[cat](t.Context(), b, "tom"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	rev, err := store.Save(t.Context(), b, "tom", cat{"Tom"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if v, r, err := store.Load[cat](t.Context(), b, "tom"); v != (cat{"Tom"}) || r != rev || err != nil {
		t.Errorf("Load = %v, %d, %v", v, r, err)
	}
	if _, err := store.Save(t.Context(), b, "tom", cat{"Kit"}, rev+1); !errors.Is(err, store.ErrConflict) {
		t.Errorf("at another revision: %v", err)
	}
	if _, err := b.Put(t.Context(), "tom", []byte(`{"Name":"Tim"} x`), rev); err != nil {
		t.Fatal(err)
	}
	if v, _, err := store.Load[cat](t.Context(), b, "tom"); v != (cat{}) || !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Load = %v, %v", v, err)
	}
}
