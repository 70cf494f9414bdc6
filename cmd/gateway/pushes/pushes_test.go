package pushes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"parley/tools/network"
)

// TestOnlyPublic: a browser cannot have the gateway call something on its own machine or network.
func TestOnlyPublic(t *testing.T) {
	var called atomic.Bool
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Store(true) }))
	defer srv.Close()
	c := client(network.NewGuard(nil, nil))
	for _, to := range []string{
		srv.URL, "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/", "https://169.254.169.254/", "https://192.168.1.1/",
		"https://[::ffff:127.0.0.1]/", "https://1.1.1.1:8443/", "https://localhost/",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is no address of a push service") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if called.Load() {
		t.Error("a server on this machine was called")
	}
}
