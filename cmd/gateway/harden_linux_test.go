package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"parley/config"
	"parley/host"
	"parley/llm/openai"
)

// TestHarden does in a process of its own what serve does before it opens anything (R-S17).
func TestHarden(t *testing.T) {
	if os.Getenv("PARLEY_TEST_HARDEN") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHarden$")
		cmd.Env = append(os.Environ(), "PARLEY_TEST_HARDEN=1", "OPENAI_API_KEY=canary-key", "OTHER=canary-other")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if b, _ := os.ReadFile("/proc/self/environ"); !bytes.Contains(b, []byte("canary-key")) {
		t.Fatal("the test proves nothing: /proc/self/environ shows nothing anyway")
	}
	dir := t.TempDir()
	p := &program{data: dir, environ: config.NewEnviron(os.Environ()), drivers: drivers()}
	c, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Harden(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile("/proc/self/environ"); err != nil || bytes.Contains(b, []byte("canary")) {
		t.Errorf("/proc/self/environ: %v\n%q", err, b)
	}
	if v, set := os.LookupEnv("OPENAI_API_KEY"); set {
		t.Errorf("OPENAI_API_KEY is still %q", v)
	}
	if os.Getenv("OTHER") != "canary-other" {
		t.Error("Go has lost its own environment")
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); n != 0 || err != nil {
		t.Errorf("dumpable: %d %v", n, err)
	}
	if c.Models["main"].Driver.(*openai.Config).APIKey != "canary-key" || p.redact.String("canary-key") != config.Hidden {
		t.Error("the key is not known any more, or shown")
	}
	// A reload reads the variable that is gone from the process.
	s, err := p.source()
	if err != nil {
		t.Fatal(err)
	}
	again, err := config.Parse(s, []byte(`{"models": {"a": {"type": "openai", "model": "m", "apiKey": "${OPENAI_API_KEY}"}}}`))
	if err != nil || again.Models["a"].Driver.(*openai.Config).APIKey != "canary-key" {
		t.Errorf("reload: %v", err)
	}
}
