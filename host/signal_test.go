package host

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestSecondSignalEndsIt: the first SIGTERM asks, the second ends the process
// within two seconds though it is busy for ever (P16).
func TestSecondSignalEndsIt(t *testing.T) {
	if os.Getenv("PARLEY_TEST_SIGNAL") != "" {
		ctx, stop := UntilSignal(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("ending")
		time.Sleep(time.Minute) // stands for a turn that does not end
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSecondSignalEndsIt$")
	cmd.Env = append(os.Environ(), "PARLEY_TEST_SIGNAL=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var second time.Time
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() != "ready" && lines.Text() != "ending" {
			continue
		}
		second = time.Now()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("ended with %v", err)
	}
	if d := time.Since(second); d > 30*time.Second || d < forcedExitDelay/2 { // the second is for a machine that has nothing else to do
		t.Errorf("it took %s", d)
	}
}

func TestStopWithoutSignal(t *testing.T) {
	ctx, stop := UntilSignal(t.Context(), syscall.SIGTERM)
	if ctx.Err() != nil {
		t.Error("it ended too early")
	}
	stop()
	stop()
	if ctx.Err() == nil {
		t.Error("the context goes on")
	}
}
