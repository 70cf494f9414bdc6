package shell

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"parley/requiretest"
	"parley/tools/network"
	"parley/tools/network/networktest"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/proxy"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proxy.RelayCommand {
		os.Exit(proxy.Relay(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// An internet is a server that programs in a sandbox reach as every host there is, by the real proxy and the real
// judgement of addresses.
type internet struct {
	content string // the folder that it serves
	secure  *httptest.Server

	mu     sync.Mutex
	dialed []string // addresses
}

// newInternet returns an internet, and the runner whose programs reach it.
func newInternet(t *testing.T) (*internet, *bwrap.Runner) {
	t.Helper()
	for _, program := range []string{"bwrap", "python3", "git", "curl"} {
		if _, err := os.Stat("/usr/bin/" + program); err != nil {
			requiretest.Missing(t, err)
		}
	}
	i := &internet{content: t.TempDir()}
	i.secure = httptest.NewTLSServer(http.FileServer(http.Dir(i.content)))
	t.Cleanup(i.secure.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	resolver := networktest.NameServer(t, func(q dnsmessage.Question) []dnsmessage.ResourceBody {
		switch {
		case q.Type != dnsmessage.TypeA:
			return nil
		case strings.HasPrefix(q.Name.String(), "inside."):
			return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}
		}
		return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: [4]byte{93, 184, 216, 34}}}
	})
	return i, bwrap.New(bwrap.Config{Folder: t.TempDir(), Relay: self, Proxy: proxy.Config{
		Guard: network.NewGuard(nil, networktest.Offline()), Resolver: resolver, Dial: i.dial,
	}})
}

func (i *internet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dialed = append(i.dialed, address)
	return (&net.Dialer{}).DialContext(ctx, network, i.secure.Listener.Addr().String())
}

// write writes a file that is served.
func (i *internet) write(t *testing.T, name string, text []byte) {
	t.Helper()
	file := filepath.Join(i.content, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// R-S16, R-S19: after an owner's yes a command installs a package from the internet into a virtual environment,
// and later commands use it; without the yes it does not, and says why.
func TestPipInstall(t *testing.T) {
	online, runner := newInternet(t)
	online.write(t, "simple/parcel/parcel-1.0-py3-none-any.whl", wheel(t))
	link := `<a href="parcel-1.0-py3-none-any.whl">parcel-1.0-py3-none-any.whl</a>`
	online.write(t, "simple/parcel/index.html", []byte(link))
	b := newBench(t, runner, Settings{Network: []string{"elsewhere.test"}})
	b.trust(online)
	if r := b.run("/usr/bin/python3 -m venv .venv"); r.Failed || !strings.Contains(r.Text, "Exit code: 0") {
		t.Fatalf("%q", r.Text)
	}
	const install = ".venv/bin/pip --disable-pip-version-check --retries 0 install --cert ca.pem -i https://example.com/simple parcel"
	const use = ".venv/bin/python -c 'import parcel; print(parcel.name)'"

	r := b.run(install)
	for _, want := range []string{"No matching distribution found for parcel", "Exit code: 1", "Not reached: example.com:443. ",
		"tools.exec.network in the config lists, elsewhere.test.", "With network set to true, an owner is asked."} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("without network: %q is not in %q", want, r.Text)
		}
	}
	b.approve = false
	b.asked = nil
	if r = b.call("exec", map[string]any{"command": install, "network": true}); len(b.asked) != 1 || !r.Failed || !strings.Contains(r.Text, "refused this call of exec: it was not run") {
		t.Errorf("after a no: %+v", r)
	}
	if r = b.run(use); !strings.Contains(r.Text, "No module named 'parcel'") || len(online.dialed) > 0 {
		t.Errorf("%q, reached %q", r.Text, online.dialed)
	}

	b.approve = true
	r = b.call("exec", map[string]any{"command": install, "network": true})
	if r.Failed || !r.Tainted || !strings.Contains(r.Text, "Successfully installed parcel-1.0") {
		t.Fatalf("after a yes: %+v", r)
	}
	if len(online.dialed) == 0 || online.dialed[0] != "93.184.216.34:443" {
		t.Errorf("reached %q", online.dialed)
	}
	b.says(use, "a parcel")
}

// R-S16, R-S19: what an owner allows by network are public hosts: neither this machine, nor private addresses, nor
// other ports than those of the web.
func TestPublicInternet(t *testing.T) {
	online, runner := newInternet(t)
	online.write(t, "hello.txt", []byte("hello there"))
	repository := filepath.Join(online.content, "project.git")
	makeRepository(t, repository)
	ours := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(ours.Close)
	b := newBench(t, runner, Settings{})
	b.trust(online)
	for _, c := range []struct{ command, want string }{
		{"curl -sS --cacert ca.pem https://example.com/hello.txt", "hello there\n\nExit code: 0"},
		{"git -c http.sslCAInfo=ca.pem clone -q https://example.com/project.git && cat project/f", "text\n\nExit code: 0"},
		{"curl -sS -m 5 --noproxy '*' " + ours.URL, "Exit code: 7"},
		{"curl -sS --noproxy '' https://127.0.0.1/", "Not reached: 127.0.0.1:443. "},
		{"curl -sS --noproxy '' " + ours.URL, "is an IP address: programs reach hosts by their names only"},
		{"curl -sS https://inside.test/", "Not reached: inside.test:443. "},
		{"curl -sS https://example.com:22/", "Not reached: example.com:22. "},
		{"git clone -q https://inside.test/project.git other", "response 403"},
		{"curl -sS http://inside.test/", "inside.test has the private or internal address 127.0.0.1, which programs may not reach"},
	} {
		r := b.call("exec", map[string]any{"command": c.command, "network": true})
		if !strings.Contains(r.Text, c.want) {
			t.Errorf("%s: %q, want %q", c.command, r.Text, c.want)
		}
	}
	for _, address := range online.dialed {
		if address != "93.184.216.34:443" {
			t.Errorf("reached %s", address)
		}
	}
}

// trust writes the certificate of i where commands start.
func (b *bench) trust(i *internet) {
	b.t.Helper()
	block := &pem.Block{Type: "CERTIFICATE", Bytes: i.secure.Certificate().Raw}
	b.run(fmt.Sprintf("cat > ca.pem <<'END'\n%sEND", pem.EncodeToMemory(block)))
}

// makeRepository makes a repository of git that a web server can serve.
func makeRepository(t *testing.T, at string) {
	t.Helper()
	script := fmt.Sprintf("git init -q -b main w && cd w && echo text > f && git add f && "+
		"git -c user.name=a -c user.email=a@b commit -qm m && git clone -q --bare . %s && git -C %s update-server-info", at, at)
	command := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	command.Dir = t.TempDir()
	command.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
}

// wheel returns the package parcel for pip.
func wheel(t *testing.T) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	const info = "parcel-1.0.dist-info/"
	for _, file := range [][2]string{
		{"parcel.py", "name = 'a parcel'\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: parcel\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", "parcel.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		f, err := w.Create(file[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}
