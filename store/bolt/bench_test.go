package bolt_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
)

func bench(b *testing.B) *bolt.Store {
	s, err := bolt.Open(b.Context(), bolt.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func BenchmarkPutAlone(b *testing.B) {
	s, val := bench(b), make([]byte, 200)
	for b.Loop() {
		if _, err := s.Bucket("b").Put(b.Context(), "k", val, store.Any); err != nil {
			b.Fatal(err)
		}
	}
}

// Many sessions append to logs of their own and wait for the disk.
func BenchmarkAppendTogether(b *testing.B) {
	for _, sessions := range []int{1, 8, 64, 256} {
		b.Run(strconv.Itoa(sessions), func(b *testing.B) {
			s, rec := bench(b), make([]byte, 500)
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ResetTimer()
			for w := range sessions {
				all.Go(func() {
					for l := s.Log(fmt.Sprint("session/", w)); left.Add(-1) >= 0; {
						if _, err := l.Append(b.Context(), store.Any, rec); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

func BenchmarkPushPullDone(b *testing.B) {
	s, body, n := bench(b), make([]byte, 500), 0
	for b.Loop() {
		n++
		if err := s.Queue("q").Push(b.Context(), fmt.Sprint(n), body); err != nil {
			b.Fatal(err)
		}
		item, err := s.Queue("q").Pull(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := item.Done(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// A log of 100,000 records: appending, reading its end, reading all of it.
func BenchmarkLongLog(b *testing.B) {
	s := bench(b)
	l, recs := s.Log("l"), make([][]byte, 1000)
	for i := range recs {
		recs[i] = make([]byte, 300)
	}
	var last uint64
	for range 100 {
		last, _ = l.Append(b.Context(), store.Any, recs...)
	}
	read := func(b *testing.B, from uint64, want int) {
		for b.Loop() {
			n := 0
			for _, err := range l.Since(b.Context(), from) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != want {
				b.Fatalf("%d records, want %d", n, want)
			}
		}
	}
	b.Run("read all", func(b *testing.B) { read(b, 0, 100_000) })
	b.Run("read the last 100", func(b *testing.B) { read(b, last-100, 100) })
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Append(b.Context(), store.Any, recs[0]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Opening and closing a Store of 10,000 logs with 4 records each.
func BenchmarkOpen(b *testing.B) {
	for _, logs := range []int{0, 100, 10_000} {
		b.Run(strconv.Itoa(logs), func(b *testing.B) {
			dir := b.TempDir()
			s, err := bolt.Open(b.Context(), bolt.Config{Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			var all sync.WaitGroup
			for i := range logs {
				all.Go(func() {
					rec := make([]byte, 300)
					_, _ = s.Log(fmt.Sprint("session/", i)).Append(b.Context(), store.Any, rec, rec, rec, rec)
				})
			}
			all.Wait()
			size := s.Used()
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			for _, mark := range []string{"clean", "unclean"} {
				b.Run(mark, func(b *testing.B) {
					for b.Loop() {
						if mark == "unclean" {
							_ = os.Truncate(file(dir)+".mark", 0)
						}
						start, before := time.Now(), resident("VmRSS:")
						s, err := bolt.Open(b.Context(), bolt.Config{Dir: dir})
						if err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(float64(time.Since(start).Microseconds()), "µs/open")
						b.ReportMetric(float64(resident("VmRSS:")-before), "kB-resident")
						b.ReportMetric(float64(size), "B-file")
						s.Close()
					}
				})
			}
		})
	}
}

// P27: after an unclean end, Open reads little of a large file, and has little of it in memory.
func TestOpenReadsLittle(t *testing.T) {
	dir, ctx := storetest.TempDir(t), t.Context()
	s := open(t, dir)
	recs := slices.Repeat([][]byte{make([]byte, 3000)}, 100)
	for range 50 {
		if _, err := s.Log("l").Append(ctx, store.Any, recs...); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // then no checkpoint goes on while it is copied, and the last one was small
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Log("l").Append(ctx, store.Any, []byte("one more")); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file(dir)) // as a kill would leave it
	if err != nil {
		t.Fatal(err)
	}
	killed := dir
	dir = storetest.TempDir(t)
	if err := os.WriteFile(file(dir), data, 0o600); err != nil {
		t.Fatal(err)
	}
	copyOver(t, file(dir)+".mark", file(killed)+".mark")
	copyLog(t, dir, killed)
	readBefore := bytesRead()
	before := resident("RssFile:") + resident("RssShmem:")
	s, err = bolt.Open(ctx, bolt.Config{Dir: dir, Probe: func(context.Context, string) ([]string, error) {
		t.Error("all of it is read")
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if read := bytesRead() - readBefore; read > int(s.Used()/2) {
		t.Errorf("%d of %d bytes read", read, s.Used())
	}
	if more := resident("RssFile:") + resident("RssShmem:") - before; more > 2000 {
		t.Errorf("%d kB more in memory for a file of %d kB", more, s.Used()>>10)
	}
}

// bytesRead returns how much this process has read with calls of the system.
func bytesRead() (n int) {
	counts, _ := os.ReadFile("/proc/self/io")
	_, after, _ := strings.Cut(string(counts), "rchar:")
	_, _ = fmt.Sscan(after, &n)
	return n
}

// resident returns the memory of this process in kB, by its name in /proc.
func resident(name string) (kB int) {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), name)
	_, _ = fmt.Sscan(after, &kB)
	return kB
}
