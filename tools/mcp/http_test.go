package mcp

import (
	"net/http"
	"strings"
	"testing"

	"parley/tools/network"
)

// R-S13: the metadata services of clouds are out of reach, also by the address of the server itself. The dialer asks
// before it connects.
func TestMetadataServices(t *testing.T) {
	for _, address := range []string{"169.254.169.254:80", "[fd00:ec2::254]:80", "[64:ff9b::a9fe:a9fe]:80", "[::ffff:169.254.169.254]:80"} {
		if network.RefuseMetadata(t.Context(), "tcp", address, nil) == nil {
			t.Errorf("%s is reached", address)
		}
	}
	for _, address := range []string{"127.0.0.1:80", "[::1]:80", "192.168.1.2:8080", "203.0.113.1:443"} {
		if err := network.RefuseMetadata(t.Context(), "tcp", address, nil); err != nil {
			t.Error(err)
		}
	}
	for _, named := range []Server{
		{URL: "http://169.254.169.254/mcp"},
		{URL: "http://127.0.0.1:1/mcp", Auth: &Auth{Server: "http://169.254.169.254"}},
	} {
		web := newHTTPClient(named, network.NewGuard(nil, nil), nil)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://169.254.169.254/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := web.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "hands out the keys") {
			t.Error(err)
		}
	}
}
