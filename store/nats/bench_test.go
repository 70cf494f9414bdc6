package nats_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"parley/store"
	"parley/store/nats"
)

// BenchmarkCluster measures calls of a Store on three servers, with three replicas, from one caller and from many. All
// servers are in this process, and none of them waits for its disk. Each record is the first of its log.
func BenchmarkCluster(b *testing.B) {
	s, err := nats.Open(b.Context(), nats.Config{URL: startCluster(b), Replicas: 3})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	bucket := s.Bucket("b")
	var n atomic.Int64
	put := func() error {
		_, err := bucket.Put(b.Context(), fmt.Sprint(n.Add(1)), make([]byte, 1000), 0)
		return err
	}
	get := func() error {
		_, _, err := bucket.Get(b.Context(), "1")
		return err
	}
	appends := func() error {
		_, err := s.Log(fmt.Sprint(n.Add(1))).Append(b.Context(), store.Any, make([]byte, 1000))
		return err
	}
	if err := put(); err != nil {
		b.Fatal(err)
	}
	for name, call := range map[string]func() error{"Put": put, "Get": get, "Append": appends} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/many", func(b *testing.B) {
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := call(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
