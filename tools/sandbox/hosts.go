package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

const (
	maxShownHosts = 10
	maxShownHost  = 64 // characters
)

// ShowHosts returns hosts, those of Outcome.Refused, for a model to read. A program chose these words,
// so what is long or not plainly a host is counted only (R-S12).
func ShowHosts(hosts []string) string {
	var shown []string
	for _, h := range hosts {
		if len(shown) < maxShownHosts && isPlainHost(h) {
			shown = append(shown, h)
		}
	}
	if more := len(hosts) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return strings.Join(shown, ", ")
}

// isPlainHost reports whether hostport is short, and made of what names of hosts and addresses are made of.
func isPlainHost(hostport string) bool {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil || len(hostport) > maxShownHost || strings.Trim(port, "0123456789") != "" {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-") == ""
}
