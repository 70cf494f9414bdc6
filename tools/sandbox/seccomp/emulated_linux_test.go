//go:build linux && !arm

package seccomp

import (
	"os"
	"os/exec"
	"testing"

	"parley/requiretest"
)

// The filter for armv7, and what answers the calls that it asks about, pass their tests in an emulator.
func TestArm(t *testing.T) {
	emulator := requiretest.Program(t, "qemu-arm")
	test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-exec", emulator, ".", "early.parley")
	test.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm", "GOARM=7")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
