package mark

import (
	"os"
	"path/filepath"
	"testing"
)

// A mark is one sector: notes that do not fit are left out.
func TestNotesFit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for length, kept := range map[int]bool{40: true, 1000: false} {
		m := Mark{Format: 4, Lineage: 7, Tx: 9, Notes: [][]byte{make([]byte, length)}}
		if err := m.Write(path, true); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(Path(path))
		if err != nil || info.Size() != size {
			t.Errorf("with a note of %d bytes: %d bytes, %v", length, info.Size(), err)
		}
		again, err := Read(path)
		if err != nil || again.Tx != 9 || (len(again.Notes) == 1) != kept {
			t.Errorf("with a note of %d bytes: %+v, %v", length, again, err)
		}
	}
}
