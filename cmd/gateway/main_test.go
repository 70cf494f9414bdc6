package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/store/nats/natstest"
	"parley/tools/mcp/mcptest"
)

func TestMain(m *testing.M) {
	if natstest.Serve() {
		return
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests wait for other processes most of the time
		panic(err)
	}
	hostile := func() { mcptest.Hostile(os.Args[1]) }
	testscript.Main(m, map[string]func(){
		"parley": main, "parley-with-more-drivers": moreDrivers, mcptest.HostileCommand: hostile,
	})
}

// TestScripts uses the program as people do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "TELEGRAM_BOT_TOKEN"} {
				e.Setenv(name, "")
			}
			e.Values[scriptGatewayKey{}] = &scriptGateway{test: e.T()}
			return os.Mkdir(e.WorkDir+"/home", 0o755)
		},
		Condition: func(name string) (bool, error) {
			if name != "busy" { // the usual port, by a gateway of whoever runs the tests
				return false, fmt.Errorf("there is no condition %q", name)
			}
			l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:18790")
			if err != nil {
				return true, nil
			}
			return false, l.Close()
		},
		Cmds: scriptCommands(),
	})
}
