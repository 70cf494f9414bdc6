package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/host"
)

// megabytes returns a figure of the gateway from /proc/PID/status, in MB: VmRSS is
// what it holds now, VmHWM the most since its start.
func (w *testGateway) megabytes(figure string) int {
	w.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.proc.cmd.Process.Pid))
	if err != nil {
		w.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), figure+":")
	kB, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return kB >> 10
}

// sendPicture sends a picture of about so many bytes by the API, as a client
// does, and returns how it was answered. It is made as it is sent.
func (w *testGateway) sendPicture(ctx context.Context, base, key string, size int) (status int, answer string, err error) {
	const head = `{"model":"parley","messages":[{"role":"user","content":[{"type":"text","text":"what is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`
	const tail = `"}}]}]}`
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 4)...)
	first := base64.StdEncoding.EncodeToString(png)
	chunk := []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("pixels"), 1<<10)))
	parts, n := []io.Reader{strings.NewReader(head + first)}, len(head)+len(first)+len(tail)
	for sent := 0; sent < size; sent += 6 << 10 {
		parts, n = append(parts, bytes.NewReader(chunk)), n+len(chunk)
	}
	req, err := http.NewRequestWithContext(ctx, "POST", base+"/v1/chat/completions", io.MultiReader(append(parts, strings.NewReader(tail))...))
	if err != nil {
		return 0, "", err
	}
	req.ContentLength = int64(n)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// sendPictures sends so many pictures at once, and returns how much memory, in
// MB, the gateway had before and at the most.
func (w *testGateway) sendPictures(uploads, size int) (before, peak int) {
	w.t.Helper()
	base, key := w.base(), w.key("owner")
	before = w.megabytes("VmRSS")
	var sending sync.WaitGroup
	for range uploads {
		sending.Go(func() {
			if status, answer, err := w.sendPicture(w.t.Context(), base, key, size); status != 200 || err != nil {
				w.t.Errorf("%d %s %v", status, answer, err)
			}
		})
	}
	sending.Wait()
	saved, err := filepath.Glob(filepath.Join(w.dir, "workspace", "inbox", "people", "*", "*", "*"))
	if len(saved) != uploads || err != nil {
		w.t.Errorf("%d pictures are in the workspace, want %d", len(saved), uploads)
	}
	return before, w.megabytes("VmHWM")
}

// TestUploadsStayOutOfMemory: pictures that come by the API at once go to the
// disk as they come in. (In memory these took more than a gigabyte.)
func TestUploadsStayOutOfMemory(t *testing.T) {
	w := newTestGateway(t, echo)
	w.start()
	before, peak := w.sendPictures(16, 12<<20)
	t.Logf("%d MB before, %d MB at the most", before, peak)
	if peak > 400 { // most of it is the race detector's
		t.Errorf("%d MB of memory at the most", peak)
	}
}

// BenchmarkUploads: forty pictures of 12 MB by the API at once.
func BenchmarkUploads(b *testing.B) {
	for range b.N {
		w := newTestGateway(b, echo)
		w.start()
		began := time.Now()
		before, peak := w.sendPictures(40, 12<<20)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-all")
		b.ReportMetric(float64(before), "MB-before")
		b.ReportMetric(float64(peak), "MB-peak")
		w.kill()
	}
}

// nearlyFull puts the testGateway on a disk of 24 MB of its own; leave fills it but for
// so many bytes.
func nearlyFull(w *testGateway) (leave func(bytes int), free func()) {
	if err := unix.Mount("tmpfs", w.dir, "tmpfs", 0, "size=24m"); err != nil {
		w.t.Skipf("mount a small disk: %v", err)
	}
	w.t.Cleanup(func() {
		w.kill()
		_ = unix.Unmount(w.dir, unix.MNT_DETACH)
	})
	ballast := filepath.Join(w.dir, "ballast")
	leave = func(bytes int) {
		left, _, _ := host.FreeSpace(w.dir)
		if err := os.WriteFile(ballast, make([]byte, int(left)-bytes), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return leave, func() {
		if err := os.Remove(ballast); err != nil {
			w.t.Fatal(err)
		}
	}
}
