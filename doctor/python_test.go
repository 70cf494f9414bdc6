package doctor

import (
	"errors"
	"testing"
)

func TestPython(t *testing.T) {
	wantFindings(t, []findingCase{
		{Python("/usr/bin/python3", nil), OK, "/usr/bin/python3"},
		{Python("", errors.New("no program: python3")), Warn, "no program: python3, so the agent cannot run code"},
	})
}
