package retention_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/retention"
)

// BenchmarkArchive archives 100,000 lines in one file, 500 at a time, as a pass over a long
// conversation or a crowded day does.
func BenchmarkArchive(b *testing.B) {
	const lines, batch = 100_000, 500
	text := strings.Repeat("x", 250)
	for b.Loop() {
		a := retention.Archive{Dir: filepath.Join(b.TempDir(), "archive")}
		for at := 0; at < lines; at += batch {
			var all [][]byte
			for i := range batch {
				all = append(all, fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, at+i, text))
			}
			if err := a.Add("part", "name", all...); err != nil {
				b.Fatal(err)
			}
		}
	}
}
