package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/tools/network"
)

// webPorts are the ports of a host that is allowed without a port.
var webPorts = []uint16{80, 443}

// A rule is an entry of Network.Hosts.
type rule struct {
	text  string // as the owner wrote it
	name  string // in ASCII and lower case; of a wildcard, what follows "*."; "" stands for every name
	below bool   // it is a wildcard: names that end with name, but not name itself
	port  uint16 // 0 stands for webPorts
}

// Check returns what is wrong with an entry of Network.Hosts.
func Check(entry string) error {
	_, err := parseRule(entry)
	return err
}

var (
	errEntry = errors.New(`is no host; allowed: such as "pypi.org", "*.debian.org", "example.com:8443" or "*", ` +
		"which is all public hosts")
	errAddress = errors.New("is an address; allowed are names of hosts, whose addresses are looked up and judged")
)

func parseRule(entry string) (rule, error) {
	r := rule{text: entry}
	if _, err := netip.ParseAddr(entry); err == nil {
		return r, errAddress
	}
	name, port, hasPort := strings.Cut(entry, ":")
	if hasPort {
		number, err := parsePort(port)
		if err != nil {
			return r, errEntry
		}
		r.port = number
	}
	if name == "*" {
		return r, nil
	}
	name, r.below = strings.CutPrefix(name, "*.")
	canonical, err := canonicalName(toASCII(strings.ToLower(name)))
	if err != nil {
		return r, errEntry
	}
	if isAddress(canonical) {
		return r, errAddress
	}
	r.name = canonical
	if r.below && !strings.Contains(r.name, ".") {
		return r, fmt.Errorf(`would be all names that end with .%s: name a domain, such as "*.example.%[1]s"`, r.name)
	}
	return r, nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' || text[0] == '+' {
		return 0, fmt.Errorf("%q is no port", text)
	}
	return uint16(n), nil
}

// isAddress reports whether host is an IP address in any form that some resolver takes for one.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(strings.TrimSuffix(host, "."))
	return err == nil || network.IsObfuscatedIP(host)
}

// toASCII returns name as the name system knows it: "bücher.de" is xn--bcher-kva.de. What has no such form is
// returned as it is. Package net/http knows how, and tells nobody but servers.
func toASCII(name string) string {
	var sent bytes.Buffer
	request := http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Host: name}
	if request.Write(&sent) != nil {
		return name
	}
	received, err := http.ReadRequest(bufio.NewReader(&sent))
	if err != nil {
		return name
	}
	return received.Host
}

var errName = errors.New("is no name of a host")

// canonicalName returns name in lower case and without the dot at its end. An error means that it is no name
// in ASCII.
func canonicalName(name string) (string, error) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if len(name) > 253 {
		return "", errName
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", errName
		}
	}
	return name, nil
}

// matches reports whether r allows the host name at any port.
func (r rule) matches(name string) bool {
	switch {
	case r.name == "":
		return true
	case r.below:
		return strings.HasSuffix(name, "."+r.name)
	}
	return name == r.name
}

func (r rule) allowsPort(port uint16) bool {
	if r.port != 0 {
		return port == r.port
	}
	return slices.Contains(webPorts, port)
}

// A target is what a program wants to reach.
type target struct {
	name string // canonical, or an address
	port uint16
}

func (t target) String() string { return net.JoinHostPort(t.name, strconv.Itoa(int(t.port))) }

// parseTarget parses "host:port".
func parseTarget(hostport string) (target, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return target{}, errors.New("is no host with a port")
	}
	number, err := parsePort(port)
	if err != nil {
		return target{}, err
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return target{address.WithZone("").String(), number}, nil
	}
	name, err := canonicalName(host)
	return target{name, number}, err
}

// A refusal says to a model why a program may not reach a host, and what rule says so.
type refusal string

func (r refusal) Error() string { return string(r) }

// A policy says which hosts a program may reach.
type policy struct {
	rules []rule
	key   string // of the config, which lists them
}

func newPolicy(hosts []string, key string) (policy, error) {
	p := policy{key: key}
	for _, host := range hosts {
		r, err := parseRule(host)
		if err != nil {
			return p, fmt.Errorf("allow a program the host %q: %w", host, err)
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

// check returns a refusal if no rule allows t. It says what would.
func (p policy) check(t target) error {
	if isAddress(t.name) {
		return refusal(t.String() + " is an IP address: programs reach hosts by their names only")
	}
	named := false
	for _, r := range p.rules {
		if !r.matches(t.name) {
			continue
		}
		named = true
		if r.allowsPort(t.port) {
			return nil
		}
	}
	wanted := t.name
	if !slices.Contains(webPorts, t.port) {
		wanted = t.String()
	}
	remedy := fmt.Sprintf("the config key %s would have to list %q", p.key, wanted)
	if named {
		return refusal(fmt.Sprintf("port %d of %s is not allowed: %s", t.port, t.name, remedy))
	}
	return refusal(fmt.Sprintf("%s is not among the hosts that programs may reach: %s; it lists %s",
		t.name, remedy, p.list()))
}

// maxListed is how many hosts a refusal lists.
const maxListed = 20

func (p policy) list() string {
	var texts []string
	for _, r := range p.rules[:min(len(p.rules), maxListed)] {
		texts = append(texts, r.text)
	}
	if more := len(p.rules) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
