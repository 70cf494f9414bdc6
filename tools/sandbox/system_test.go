package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/workspace"
)

// R-S17: of /etc, programs see what they need and nothing in which people write passwords.
func TestEtcFiles(t *testing.T) {
	etc := t.TempDir()
	for name, want := range map[string]bool{
		"passwd":                               true,
		"ssl/certs/java/cacerts":               true,
		"python3.11/sitecustomize.py":          true,
		"java-17-openjdk/jvm-amd64.cfg":        true,
		"java-17-openjdk/security/java.policy": true,
		"R/ldpaths":                            true,
		"texmf/web2c/texmf.cnf":                true,

		"shadow":                          false,
		"ssl/private/key.pem":             false,
		"profile":                         false, // exports of whoever runs the machine
		"bash.bashrc":                     false,
		"php/8.2/cli/php.ini":             false, // passwords of databases
		"php/8.2/mods-available/some.ini": false, // keys of licences
		"java-17-openjdk/net.properties":  false, // the password of a proxy
		"java-17-openjdk/management/jmxremote.password": false,
		"R/Renviron.site":       false,
		"python3.11/own.conf":   false,
		"perl/Own/Settings.pm":  false,
		"ruby/own.yml":          false,
		"nodejs/npmrc":          false,
		"postgresql/pg_hba.cnf": false,
	} {
		file := filepath.Join(etc, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		isSeen := func(path string) bool { return workspace.Within(file, path) }
		if got := slices.ContainsFunc(etcFiles(etc), isSeen); got != want {
			t.Errorf("%s: programs see it: %t, want %t", name, got, want)
		}
	}
}
