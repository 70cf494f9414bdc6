package network_test

import (
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/channels/network"
	"parley/store"
)

// P24, R-S26: a client speaks HTTP/1.1, also to who could do more, and takes no
// secret of its address elsewhere.
func TestClient(t *testing.T) {
	s := httptest.NewUnstartedServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	usable := error(nil)
	c := network.NewClient(func() error { return usable })
	defer c.CloseIdleConnections()
	tr := network.TransportOf(c)
	tr.TLSClientConfig.RootCAs = x509.NewCertPool()
	tr.TLSClientConfig.RootCAs.AddCert(s.Certificate())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound || resp.ProtoMajor != 1 {
		t.Errorf("it got %s by %s", resp.Status, resp.Proto)
	}
	usable = store.ErrClosed
	if _, err := c.Do(req); !errors.Is(err, store.ErrClosed) { //nolint:bodyclose // there is no response
		t.Errorf("a gateway that another one has taken over asks: %v", err)
	}
}
