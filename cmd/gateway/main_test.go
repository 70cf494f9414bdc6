package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"parley": main})
}

// TestScripts uses the program as people do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir+"/home")
			for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "TELEGRAM_BOT_TOKEN"} {
				e.Setenv(name, "")
			}
			return os.Mkdir(e.WorkDir+"/home", 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": exitCode,
			"mode": fileMode,
		},
	})
}
