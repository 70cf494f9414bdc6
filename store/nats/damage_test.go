package nats_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/store"
	"parley/store/nats"
	"parley/store/storetest"
)

// connect is a connection to the server that goes past the Store.
func connect(t *testing.T, s *server.Server) jetstream.JetStream {
	t.Helper()
	conn, err := client.Connect("", client.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// falsify writes the last message of subject once more, with another body.
func falsify(t *testing.T, js jetstream.JetStream, stream, subject string) {
	t.Helper()
	ctx := t.Context()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		t.Fatal(err)
	}
	copied := client.NewMsg(m.Subject)
	for name := range m.Header {
		if bytes.HasPrefix([]byte(name), []byte("Parley-")) {
			copied.Header.Set(name, m.Header.Get(name))
		}
	}
	copied.Data = []byte("false")
	if err := s.DeleteMsg(ctx, m.Sequence); err != nil {
		t.Fatal(err)
	}
	if _, err := js.PublishMsg(ctx, copied); err != nil {
		t.Fatal(err)
	}
}

// What is damaged is reported, and the rest goes on (P21).
func TestDamage(t *testing.T) {
	srv := startServer(t)
	s, js := open(t, srv, nats.Config{}), connect(t, srv)
	ctx := t.Context()
	b, l, q := s.Bucket("b"), s.Log("l"), s.Queue("q")

	for _, key := range []string{"bad", "good"} {
		if _, err := b.Put(ctx, key, []byte("v"), 0); err != nil {
			t.Fatal(err)
		}
	}
	falsify(t, js, "parley-buckets", "parley.bucket.b.bad")
	if _, _, err := b.Get(ctx, "bad"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Get of a damaged value = %v", err)
	}
	if _, _, err := b.Get(ctx, "good"); err != nil {
		t.Errorf("Get of another value = %v", err)
	}

	for i := range 6 {
		if _, err := l.Append(ctx, store.Any, fmt.Append(nil, i+1)); err != nil {
			t.Fatal(err)
		}
		if i == 1 { // it is written again, in its place
			falsify(t, js, "parley-logs", "parley.log.l")
		}
	}
	logs, err := js.Stream(ctx, "parley-logs")
	if err != nil {
		t.Fatal(err)
	}
	fourth, err := logs.GetMsg(ctx, 5)
	if err != nil || string(fourth.Data) != "4" {
		t.Fatalf("message 5 = %v, %v", fourth, err)
	}
	if err := logs.DeleteMsg(ctx, 5); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r, err := range l.Since(ctx, 0) {
		got = append(got, fmt.Sprint(r.Seq, ":", string(r.Body), ":", errors.Is(err, store.ErrDamaged)))
	}
	if fmt.Sprint(got) != "[1:1:false 2::true 3:3:false 4::true 5:5:false 6:6:false]" {
		t.Errorf("records = %v", got)
	}

	large := bytes.Repeat([]byte{'x'}, 1<<20)
	if err := q.Push(ctx, "bad", large); err != nil {
		t.Fatal(err)
	}
	if err := q.Push(ctx, "good", large); err != nil {
		t.Fatal(err)
	}
	queues, err := js.Stream(ctx, "parley-queues")
	if err != nil {
		t.Fatal(err)
	}
	if err := queues.DeleteMsg(ctx, 2); err != nil { // the first piece of the work
		t.Fatal(err)
	}
	if item, err := q.Pull(ctx); item.ID != "good" || err != nil {
		t.Errorf("Pull = %q, %v", item.ID, err)
	}
}

// A stream that is full removes nothing, and says so (P19).
func TestFull(t *testing.T) {
	srv := startServer(t)
	open(t, srv, nats.Config{}) // which makes the streams
	js := connect(t, srv)
	ctx := t.Context()
	stream, err := js.Stream(ctx, "parley-buckets")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.MaxBytes = 256 << 10
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	s := open(t, srv, nats.Config{}) // which leaves the owner's limit alone
	b := s.Bucket("b")
	if _, err := b.Put(ctx, "a", make([]byte, 200<<10), 0); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{200 << 10, 1 << 20} {
		if _, err := b.Put(ctx, "b", make([]byte, size), 0); !errors.Is(err, store.ErrFull) {
			t.Errorf("Put of %d bytes into a full stream = %v", size, err)
		}
	}
	if err := b.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, "b", make([]byte, 100<<10), 0); err != nil {
		t.Errorf("Put after a deletion = %v", err)
	}
}

// A log among others is read from any record, without all that is before it.
func TestSinceAnywhere(t *testing.T) {
	srv := startServer(t)
	s := open(t, srv, nats.Config{})
	ctx := t.Context()
	var many [][]byte
	for range 250 {
		many = append(many, []byte("r"))
	}
	for range 4 {
		for _, name := range []string{"l", "another"} {
			if _, err := s.Log(name).Append(ctx, store.Any, many...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Log("l").Trim(ctx, 333); err != nil {
		t.Fatal(err)
	}
	fresh := open(t, srv, nats.Config{}).Log("l")
	for _, seq := range []uint64{0, 332, 333, 334, 500, 501, 749, 750, 998, 999, 1000} {
		got := storetest.Records(t, fresh, seq)
		first := max(seq, 333) + 1
		if len(got) != int(1000+1-first) || len(got) > 0 && got[0] != fmt.Sprint(first, ":r") {
			t.Errorf("Since(%d) has %d records, from %.1q", seq, len(got), got)
		}
	}
}
