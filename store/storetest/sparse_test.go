package storetest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"parley/store/storetest"
)

// A copy has what the file has, wherever there are holes.
func TestSparse(t *testing.T) {
	dir, to := storetest.TempDir(t), storetest.TempDir(t)
	const size, block = 16 << 20, 64 << 10
	for name, offsets := range map[string][]int64{
		"empty": nil, "begin": {0}, "end": {size - block}, "middle": {3 * block}, "some": {0, 7 * block, 9 * block, size - block},
	} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		for n, at := range offsets {
			if _, err := f.WriteAt(bytes.Repeat([]byte{byte(n + 1)}, block), at); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
	}
	if err := os.MkdirAll(filepath.Join(dir, "below", "it"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "below", "it", "small"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := storetest.CopyDir(to, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"empty", "begin", "end", "middle", "some", "below/it/small"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is copied as something else", name)
		}
	}
}
