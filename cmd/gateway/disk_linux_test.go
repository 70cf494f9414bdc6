package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"parley/channels/telegram/telegramtest"
)

// TestP19FullDisk: while there is no space, what people say stays at Telegram;
// when there is again, it is answered without a restart.
func TestP19FullDisk(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*testGateway) (fill, free func()){"small disk": smallDisk, "file size": fileLimit} {
		t.Run(name, func(t *testing.T) {
			w := newTestGateway(t, echo)
			fill, free := limit(w)
			fullDisk(t, w, fill, free)
		})
	}
}

// smallDisk puts the testGateway on a disk of its own.
func smallDisk(w *testGateway) (fill, free func()) {
	if err := unix.Mount("tmpfs", w.dir, "tmpfs", 0, "size=24m"); err != nil {
		w.t.Skipf("mount a small disk: %v", err) // a container may not; a limit to the size of files needs no rights
	}
	w.t.Cleanup(func() {
		w.kill()
		_ = unix.Unmount(w.dir, unix.MNT_DETACH)
	})
	ballast := filepath.Join(w.dir, "ballast")
	fill = func() {
		if err := os.WriteFile(ballast, make([]byte, 64<<20), 0o600); err == nil {
			w.t.Fatal("the disk is not full")
		}
	}
	return fill, func() {
		if err := os.Remove(ballast); err != nil {
			w.t.Fatal(err)
		}
	}
}

// fileLimit lets no file of the gateway grow or change.
func fileLimit(w *testGateway) (fill, free func()) {
	var roomy unix.Rlimit
	set := func(limit, old *unix.Rlimit) {
		if err := unix.Prlimit(w.proc.cmd.Process.Pid, unix.RLIMIT_FSIZE, limit, old); err != nil {
			w.t.Fatal(err)
		}
	}
	fill = func() {
		set(nil, &roomy)
		set(&unix.Rlimit{Cur: 0, Max: roomy.Max}, nil)
	}
	return fill, func() { set(&roomy, nil) }
}

func fullDisk(t *testing.T, w *testGateway, fill, free func()) {
	w.start()
	w.tg.Say(person, "before")
	w.says(person, "heard before")
	fill()
	long := strings.Repeat("x", 4000)
	const people = 60
	for i := range people {
		w.tg.Say(int64(9000+i), long)
	}
	w.logs("update not kept", 1)
	w.tg.Look(func(v telegramtest.View) {
		if v.Pending() == 0 {
			t.Error("the update was confirmed")
		}
	})
	free()
	for i := range people {
		w.told(int64(9000+i), "an answer", func(texts []string) bool { return slices.Contains(texts, "heard "+long) }) // and a notice, maybe
	}
}
