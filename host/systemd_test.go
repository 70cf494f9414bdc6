package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/host"
	"parley/requiretest"
)

// systemd understands every line of the unit. Versions before 254 do not know DelegateSubgroup, and say
// so and go on.
func TestUnitIsValid(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		requiretest.Missing(t, err)
	}
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	file := filepath.Join(dir, "parley.service")
	args := []string{"/usr/bin/env", "--data", `/srv/a "b" 100% $HOME \n`, "run"}
	text := host.Unit(args, filepath.Join(dir, "100% mine", "environment"))
	for _, c := range []struct{ text, complaint string }{
		{text, ""},
		{strings.Replace(text, "Restart=", "Restrat=", 1), "Restrat"},
		{strings.Replace(text, "Delegate=yes", "Delegate=perhaps", 1), "perhaps"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), program, "verify", "--user", "--man=no", file).CombinedOutput()
		if err != nil && c.complaint == "" {
			t.Errorf("%v: %s", err, out)
		}
		var complaints []string
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, "'DelegateSubgroup'") {
				complaints = append(complaints, line)
			}
		}
		told := strings.Join(complaints, "")
		if c.complaint == "" && told != "" || !strings.Contains(told, c.complaint) {
			t.Errorf("%q was complained about, not %q", told, c.complaint)
		}
	}
}
