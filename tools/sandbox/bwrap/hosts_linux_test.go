package bwrap_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"parley/tools/network"
	"parley/tools/network/networktest"
	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/proxy"
	"parley/tools/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proxy.RelayCommand {
		os.Exit(proxy.Relay(os.Args[2:]))
	}
	os.Exit(sandboxtest.Main(m))
}

// A program reaches the hosts that it may and no others, and the caller is told which it tried.
func TestHosts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "from the server")
	}))
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	resolver := networktest.NameServer(t, func(q dnsmessage.Question) []dnsmessage.ResourceBody {
		return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}
	})
	guard := network.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, networktest.Offline())
	runner := bwrap.New(bwrap.Config{Folder: t.TempDir(), Relay: self, Proxy: proxy.Config{Guard: guard, Resolver: resolver}})
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	script := "curl -s http://site.test:" + port + "; curl -s -o /dev/null http://refused.test/; " +
		"curl -s --noproxy '*' " + server.URL + " || echo; echo no other way"
	for host, want := range map[string]string{
		"site.test:" + port: "from the server\nno other way\n",
		"other.test":        "no other way\n",
	} {
		var out bytes.Buffer
		o, err := runner.Run(t.Context(), sandbox.Spec{
			Args: []string{"sh", "-c", script}, Stdout: &out, Network: sandbox.Network{Hosts: []string{host}},
		})
		if err != nil || o.End != sandbox.Exited {
			t.Fatalf("%+v, %v", o, err)
		}
		if !strings.HasSuffix(out.String(), want) || strings.Contains(out.String(), "from") != strings.Contains(want, "from") {
			t.Errorf("with %q wrote %q", host, out.String())
		}
		if !slices.Contains(o.Refused, "refused.test:80") {
			t.Errorf("with %q refused %q", host, o.Refused)
		}
	}
}
