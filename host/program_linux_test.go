package host

import (
	"os"
	"slices"
	"strings"
	"testing"

	"parley/requiretest"
)

const someSmaps = `00400000-00402000 r--p 00000000 fe:00 42  /usr/bin/parley
Size:                  8 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
00402000-01129000 r-xp 00002000 fe:00 42  /usr/bin/parley
Anonymous:             0 kB
01e2c000-01e2d000 r--p 01a2c000 fe:00 42  /usr/bin/parley
Anonymous:             4 kB
01e2d000-01f61000 rw-p 01a2d000 fe:00 42  /usr/bin/parley
Anonymous:             0 kB
7f3ec124d000-7f3ec13a3000 r-xp 00026000 fe:00 7  /usr/lib/libc.so.6
Anonymous:             0 kB
7f3e78d9d000-7f3e78efd000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
`

// Only what is as it is in the file may be given up: not what can be written, and not what the linker has
// written before it was protected.
func TestUnchangedAreas(t *testing.T) {
	got := unchangedAreas(strings.NewReader(someSmaps), "/usr/bin/parley")
	want := []area{{0x400000, 0x402000}, {0x402000, 0x1129000}}
	if !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// This program has such areas, and goes on after they were given up.
func TestReleaseProgram(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		requiretest.Missing(t, err)
	}
	defer smaps.Close()
	if len(unchangedAreas(smaps, program)) == 0 {
		t.Error("no part of this program would be given up")
	}
	releaseProgram()
	TestUnchangedAreas(t)
}
