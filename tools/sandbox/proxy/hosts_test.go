package proxy

import (
	"strings"
	"testing"
)

// What an owner may write in tools.exec.network, and what is said of the rest.
func TestCheck(t *testing.T) {
	for _, entry := range strings.Fields("* *:22 pypi.org *.debian.org PyPI.org pypi.org. example.com:8443 *.example.com:8080 " +
		"xn--bcher-kva.de bücher.de *.bücher.de registry under_score.example a.b.c.d.example 1.example 3com.com") {
		if err := Check(entry); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
	const noHost = "is no host"
	const address = "is an address"
	for entry, want := range map[string]string{
		"":                          noHost,
		"*:":                        noHost,
		"*:https":                   noHost,
		"**":                        noHost,
		"*.":                        noHost,
		"*.*.org":                   noHost,
		"a.*.org":                   noHost,
		"*pi.org":                   noHost,
		"**.org":                    noHost,
		"*.org":                     `name a domain, such as "*.example.org"`,
		"*.localhost":               "name a domain",
		".org":                      noHost,
		"a..org":                    noHost,
		"pypi.org..":                noHost,
		"-a.org":                    noHost,
		"a-.org":                    noHost,
		" pypi.org":                 noHost,
		"pypi.org pypi.com":         noHost,
		"pypi.org,pypi.com":         noHost,
		"https://pypi.org":          noHost,
		"pypi.org/simple":           noHost,
		"user@pypi.org":             noHost,
		"pypi.org:":                 noHost,
		"pypi.org:0":                noHost,
		"pypi.org:080":              noHost,
		"pypi.org:+80":              noHost,
		"pypi.org:65536":            noHost,
		"pypi.org:http":             noHost,
		"pypi.org:80:80":            noHost,
		"pypi.org\n":                noHost,
		"pypi.org\x00":              noHost,
		strings.Repeat("a", 64):     noHost,
		strings.Repeat("a.", 130):   noHost,
		"10.0.0.1":                  address,
		"10.0.0.1:80":               address,
		"93.184.216.34":             address,
		"2130706433":                address,
		"0x7f.1":                    address,
		"127.1":                     address,
		"::1":                       address,
		"fe80::1%eth0":              address,
		"[::1]":                     noHost,
		"[::1]:80":                  noHost,
		"::ffff:93.184.216.34":      address,
		"exa\u200bmple.com/../../x": noHost,
	} {
		if err := Check(entry); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", entry, err, want)
		}
	}
}

// Which rule allows which host at which port.
func TestRules(t *testing.T) {
	for _, c := range []struct{ hosts, allowed, refused string }{
		{
			"pypi.org",
			"pypi.org:443 pypi.org:80 PYPI.ORG:443 pypi.org.:443",
			"pypi.org:22 pypi.org:8080 files.pypi.org:443 notpypi.org:443 pypi.org.evil.com:443 pypi.com:443 org:443 localhost:80",
		},
		{
			"*.debian.org",
			"deb.debian.org:80 a.b.debian.org:443 DEB.Debian.Org.:443",
			"debian.org:80 evildebian.org:80 deb.debian.org:25 deb.debian.org.evil.com:80",
		},
		{"example.com:8443", "example.com:8443", "example.com:443 example.com:80 www.example.com:8443"},
		{"example.com example.com:8443", "example.com:8443 example.com:443", "example.com:22"},
		{"example.com:22", "example.com:22", "example.com:443"},
		{"BÜCHER.de", "xn--bcher-kva.de:443 XN--BCHER-KVA.de:443", "bucher.de:443"},
		{"", "", "pypi.org:443 a:80"},
		{
			"*", "pypi.org:443 a.b.c:80 localhost:80",
			"pypi.org:22 pypi.org:25 127.0.0.1:80 93.184.216.34:443 [::1]:443 169.254.169.254:80 0x7f.1:80 2130706433:80",
		},
		{"* example.com:22", "pypi.org:443 example.com:22", "pypi.org:22 example.com:25"},
		{"*:22", "pypi.org:22", "pypi.org:443 127.0.0.1:22"},
		{
			"*.example.com", "x.example.com:80",
			"127.0.0.1:80 [::1]:443 [::ffff:93.184.216.34]:443 93.184.216.34:443 2130706433:80 0x7f000001:80 0177.0.0.1:80 127.1:80 10.0.0.1.:80",
		},
	} {
		rules, err := newPolicy(strings.Fields(c.hosts), "a.key")
		if err != nil {
			t.Fatal(err)
		}
		check := func(hostport string) error {
			target, err := parseTarget(hostport)
			if err != nil {
				return err
			}
			return rules.check(target)
		}
		for hostport := range strings.FieldsSeq(c.allowed) {
			if err := check(hostport); err != nil {
				t.Errorf("%q refuses %s: %v", c.hosts, hostport, err)
			}
		}
		for hostport := range strings.FieldsSeq(c.refused) {
			if err := check(hostport); err == nil {
				t.Errorf("%q allows %s", c.hosts, hostport)
			}
		}
	}
}

// A target that is no name of a host is not looked up, and not shown to anybody.
func TestParseTarget(t *testing.T) {
	for _, hostport := range []string{
		"", "example.com", "example.com:", "example.com:0", "example.com:99999", "example.com:https", ":443", ".:443",
		"a b:443", "a\r\nX: y:443", "user@example.com:443", "bücher.de:443", "exam\x00ple.com:443", "%65xample.com:443", "a/b:443",
		"[]:443", "[example.com:443", strings.Repeat("a.", 200) + "com:443",
	} {
		if target, err := parseTarget(hostport); err == nil {
			t.Errorf("%q is taken for %s", hostport, target)
		}
	}
}
