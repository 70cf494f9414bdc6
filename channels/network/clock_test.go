package network

import (
	"net/http"
	"testing"
	"time"

	"parley/timetest"
)

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestServerClock: by the clock of a server, which its answers tell, a message
// is as old as it is, however wrong the clock of this machine is (P23).
func TestServerClock(t *testing.T) {
	for _, c := range []struct {
		name string
		skew time.Duration // of this machine
		want time.Duration
	}{
		{"a day ahead", 25 * time.Hour, 25 * time.Hour},
		{"a day behind", -25 * time.Hour, 0},
		{"right but for the way of the answer", 30 * time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				var clock ServerClock
				said := time.Now().Add(-c.skew).Truncate(time.Second)
				client := &http.Client{Transport: transportFunc(func(*http.Request) (*http.Response, error) {
					date := time.Now().Add(-c.skew).UTC().Format(http.TimeFormat)
					return &http.Response{StatusCode: 200, Header: http.Header{"Date": {date}}, Body: http.NoBody}, nil
				})}
				clock.Watch(client)
				if got := clock.Local(said); got != said {
					t.Errorf("before it knows anything: %v, want %v", got, said)
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server.test/", nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				timetest.Sleep(time.Hour)
				if off := time.Until(clock.Now().Add(c.skew)).Abs(); off > time.Second {
					t.Errorf("the server's clock shows %v, wrong by %v", clock.Now(), off)
				}
				if got := clock.Local(said); !got.Equal(said.Add(c.want)) {
					t.Errorf("what was said at %v was said at %v", said, got)
				}
			})
		})
	}
}
