package bolt

import (
	"bytes"
	"errors"
	"fmt"

	"parley/store/bolt/checksum"
	"parley/store/bolt/mark"
	"parley/store/bolt/pages"
	"parley/store/bolt/wal"
)

// Only a transaction changes the file, and it writes into pages that were free. What a
// crash can harm, if a disk does not keep what it has synced, is what the last ones have
// written. So the writer notes in the log which pages a transaction has written, with
// their checksum, and after an unclean end Open checks these. What is older was checked
// when it was new, and is checked again by [Store.Verify] and when it is read. While there
// is no log, as after a start and after a compaction, the mark has the note.

// addNote appends n to the log if there is one. Without it the next start after an unclean
// end reads the whole file.
func (w *writer) addNote(n pages.Note) error {
	if n.Tx == 0 || w.wal == nil || !w.wal.Exists() {
		return nil
	}
	if err := w.wal.Append(n.Encode()); err != nil && !errors.Is(err, wal.ErrNoSpace) {
		return w.logError(err)
	}
	return nil
}

// checkWritten returns nil if what the last transaction has written into the file at path
// is there, according to the log that m knows or to m itself, and otherwise why that is not
// known. Of a file that was changed after it was closed that is never known.
func checkWritten(path string, m *mark.Mark) error {
	if m == nil || m.Lineage == 0 {
		return errors.New("nothing is known of it")
	}
	var note pages.Note
	err := wal.Read(LogOf(path), uint64(m.Lineage), func(payload []byte) {
		if _, ok := pages.ParseNote(payload); ok {
			note, _ = pages.ParseNote(bytes.Clone(payload))
		}
	})
	if err != nil {
		return err
	}
	var notes []pages.Note
	for _, n := range m.PageNotes() {
		if n.Tx > note.Tx && m.Closed == nil { // an earlier one would be taken for the last
			notes = append(notes, n)
		}
	}
	return pages.CheckFile(path, append(notes, note), func(names [][]byte, key, val []byte) error {
		if where := damageAt(names, key, val); where != "" {
			return fmt.Errorf("%s is damaged", where)
		}
		return nil
	})
}

// damageAt names an entry of the file whose checksum is wrong, and returns "" if it is right.
func damageAt(names [][]byte, key, val []byte) string {
	if len(names) != 2 {
		return describeEntry([]byte("entry outside of all buckets"), nil, key)
	}
	top, name := names[0], names[1]
	if _, ok := checksum.Strip(checksum.Place(top, name), key, val); !ok {
		return describeEntry(top, name, key)
	}
	return ""
}
