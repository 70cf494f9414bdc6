// Package mappedtest tells how much of a file the process has in memory.
package mappedtest

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/requiretest"
)

// Resident returns how many kB of the file at path are mapped and in memory. A system that does not tell ends the test as requiretest
// says.
func Resident(t *testing.T, path string) (kB int) {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		requiretest.Missing(t, "this system does not tell what is in memory: ", err)
	}
	defer smaps.Close()
	isOfFile := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		var start, end uintptr
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err == nil { // what follows is of another area
			isOfFile = strings.HasSuffix(line, " "+path)
		}
		if rest, isSize := strings.CutPrefix(line, "Rss:"); isSize && isOfFile {
			n := 0
			_, _ = fmt.Sscan(rest, &n)
			kB += n
		}
	}
	return kB
}
