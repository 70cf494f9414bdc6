package parley

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mayskip lists the files whose tests may be skipped even where nothing may be missing, and why.
var mayskip = map[string]string{
	"channels/channeltest/conformance.go":      "a power that a driver does not have",
	"channels/console/text_test.go":            "inputs of a fuzz test that say nothing",
	"cmd/gateway/disk_linux_test.go":           "a container may not mount; a limit to the size of files needs no rights",
	"cmd/gateway/film_linux_test.go":           "makes a picture when it is asked for",
	"cmd/gateway/owner_test.go":                "only root can act as another user",
	"cmd/gateway/size_linux_test.go":           "a limit for one architecture",
	"cmd/gateway/uploads_linux_test.go":        "a container may not mount",
	"redact/redact_test.go":                    "draws of a property test that say nothing",
	"store/bolt/full_linux_test.go":            "a container may not mount; TestFullLimit needs no rights",
	"tools/python/escape_test.go":              "no sandbox at all, after each was required",
	"tools/sandbox/docker/docker_test.go":      "a daemon is nothing that tests can install",
	"tools/sandbox/process_linux_test.go":      "cgroups are the kernel's to give",
	"tools/sandbox/sandboxtest/suite_linux.go": "exceptions that a driver states",
}

var skips = regexp.MustCompile(`\b(t|b|tb|f)\.Skip(f|Now)?\(`)

// What a machine may lack is looked for by requiretest, so that PARLEY_REQUIRE=all finds every test that is not run.
func TestSkips(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		folder := filepath.Base(filepath.Dir(path))
		if err != nil || !strings.HasSuffix(path, ".go") || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(folder, "test") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || folder == "requiretest" {
			return err
		}
		path = filepath.ToSlash(path)
		switch {
		case !skips.Match(text):
		case mayskip[path] == "":
			t.Errorf("%s skips a test: requiretest.Missing says what is missing", path)
		default:
			found[path] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path := range mayskip {
		if !found[path] {
			t.Errorf("%s skips nothing any more", path)
		}
	}
}
