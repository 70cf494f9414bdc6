package network_test

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/channels/network"
)

// P24, R-S26: a client speaks HTTP/1.1, also to who could do more, and takes no
// secret of its address elsewhere.
func TestClient(t *testing.T) {
	s := httptest.NewUnstartedServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := network.NewClient()
	tr := c.Transport.(*http.Transport)
	defer tr.CloseIdleConnections()
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
}
