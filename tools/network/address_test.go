package network

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"parley/timetest"
	"parley/tools/network/networktest"
)

// R-S19: metadata services hand out keys. No config reaches one, in any of the
// forms in which an IPv6 address can hold an IPv4 one.
func TestMetadataIsNeverReached(t *testing.T) {
	metadata := `169.254.169.254 169.254.170.2 169.254.170.23 169.254.0.23 100.100.100.200 100.96.0.96 100.80.80.80 168.63.129.16 192.0.0.192
		::ffff:169.254.169.254 ::ffff:100.100.100.200 ::a9fe:a9fe ::6464:64c8 ::ffff:0:a9fe:a9fe
		64:ff9b::a9fe:a9fe 64:ff9b::6464:64c8 64:ff9b:1::a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00:: 64:ff9b:1:1:2:3:a9fe:a9fe
		2002:a9fe:a9fe::1 2002:6464:64c8::1 2001:0:4136:e378:8000:63bf:5601:5601 2001:0:a9fe:a9fe::1
		fe80::5efe:a9fe:a9fe fe80::200:5efe:a9fe:a9fe 2001:470::5efe:6464:64c8 fd00:1::300:5efe:a83f:8110
		fd00:ec2::254 fd00:ec2::23 fd00:ec2::253 fd20:ce::254 fd00:c1::a9fe:a9fe fd00:42::42 fd00:a9fe:a9fe::1 fd00:100::100:200
		fe80::a9fe:a9fe fe80::a9fe:a9fe%eth0 2600:1::a9fe:a9fe 2001:db8:64::a9fe:a9fe`
	for _, networks := range []string{"", "0.0.0.0/0 ::/0", "fc00::/7", "fd00::/8", "fe80::/10", "169.254.0.0/16", "100.64.0.0/10", "::/96", "64:ff9b::/96", "2002::/16", "2001::/32"} {
		g := NewGuard(prefixes(networks), networktest.Offline())
		for a := range strings.FieldsSeq(metadata) {
			if g.Reach(t.Context(), netip.MustParseAddr(a)) != Nowhere {
				t.Errorf("%s is reached with allowPrivate %q", a, networks)
			}
		}
	}
}

// R-S19: an IPv6 address that holds an IPv4 one reaches what that one may.
func TestEmbeddedAddresses(t *testing.T) {
	for _, c := range []struct {
		networks, addresses string
		want                Reach
	}{
		{"", "64:ff9b::808:808 64:ff9b::5db8:d822 2001:470::5efe:808:808 2001:470::200:5efe:808:808", PublicWeb},
		{"", "64:ff9b::a00:1 64:ff9b::7f00:1 64:ff9b::c0a8:1 2001:470::5efe:a00:1 2001:470::200:5efe:7f00:1 2a00::100:5efe:c0a8:1", Nowhere},
		{"10.0.0.0/8", "64:ff9b::a00:1 10.0.0.1 ::ffff:10.0.0.1", Opened},
		{"fe80::/10", "fe80::5efe:a00:1 fe80::200:5efe:c0a8:1", Nowhere},
		{"fe80::/10", "fe80::1 fe80::5efe:808:808", Opened},
		{"::/0", "::10.0.0.1 ::127.0.0.1 fd00::5efe:a00:1 64:ff9b::a00:1 64:ff9b:1::a00:1", Nowhere},
		{"::/0", "::1 fd00::1", Opened},
	} {
		g := NewGuard(prefixes(c.networks), networktest.Offline())
		for a := range strings.FieldsSeq(c.addresses) {
			if got := g.Reach(t.Context(), netip.MustParseAddr(a)); got != c.want {
				t.Errorf("%s with allowPrivate %q: %d, want %d", a, c.networks, got, c.want)
			}
		}
	}
}

// R-S19: a network that has a NAT64 prefix of its own says so under ipv4only.arpa
// (RFC 7050). What is behind that prefix is judged as the IPv4 address it is.
func TestNAT64OfTheNetwork(t *testing.T) {
	for _, c := range []struct{ answer, networks, reached, refused string }{
		{"2a01:4f9:64::c000:aa", "", "2a01:4f9:64::808:808", "2a01:4f9:64::a00:1 2a01:4f9:64::7f00:1 2a01:4f9:64::a9fe:a9fe 2a01:4f9:64::6464:64c8"},
		{"2a01:4f9:64:c000:0:aa00:: 2a01:4f9:64:c000:0:ab00::", "", "2a01:4f9:64:808:8:800::", "2a01:4f9:64:a00:0:100:: 2a01:4f9:64:a9fe:a9:fe00::"}, // /48
		{"2a01:4f9:c000:aa::", "", "2a01:4f9:808:808::", "2a01:4f9:a00:1:: 2a01:4f9:a9fe:a9fe::"},                                                    // /32
		{"64:ff9b:1::c000:aa", "", "64:ff9b:1::808:808", "64:ff9b:1::a00:1 64:ff9b:1::a9fe:a9fe 64:ff9b:1:2::808:808"},
		{"fd12:64::c000:aa", "", "", "fd12:64::808:808 fd12:64::a00:1"},
		{"fd12:64::c000:aa", "fd12::/16", "fd12:64::808:808 fd12:65::a00:1", "fd12:64::a00:1 fd12:64::a9fe:a9fe"},
		{"", "", "2a01:4f9:64::808:808", "64:ff9b:1::808:808"},
	} {
		g := NewGuard(prefixes(c.networks), nat64(t, strings.Fields(c.answer)...))
		for a := range strings.FieldsSeq(c.reached) {
			if g.Reach(t.Context(), netip.MustParseAddr(a)) == Nowhere {
				t.Errorf("ipv4only.arpa is at %q: %s is refused", c.answer, a)
			}
		}
		for a := range strings.FieldsSeq(c.refused) {
			if g.Reach(t.Context(), netip.MustParseAddr(a)) != Nowhere {
				t.Errorf("ipv4only.arpa is at %q: %s is reached", c.answer, a)
			}
		}
	}
}

// The prefix is asked for when it is needed, and asked for again when the machine
// may have moved to another network.
func TestNAT64IsAskedForOnce(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		asked := 0
		g := NewGuard(nil, nil)
		g.nat64.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			asked++
			return []netip.Addr{netip.MustParseAddr("2a01:4f9:64::c000:aa")}, nil
		}
		for _, a := range []string{"1.1.1.1", "10.0.0.1", "fd00::1", "64:ff9b::808:808", "::1", "2002::1"} {
			g.Reach(t.Context(), netip.MustParseAddr(a))
		}
		if asked != 0 {
			t.Errorf("asked %d times where it does not matter", asked)
		}
		for range 5 {
			if g.Reach(t.Context(), netip.MustParseAddr("2a01:4f9:64::a00:1")) != Nowhere {
				t.Error("a private address behind NAT64 is reached")
			}
		}
		if asked != 1 {
			t.Errorf("asked %d times, want once", asked)
		}
		timetest.Sleep(nat64TTL)
		g.Reach(t.Context(), netip.MustParseAddr("2a01:4f9:64::a00:1"))
		if asked != 2 {
			t.Errorf("asked %d times after %v, want twice", asked, nat64TTL)
		}
	})
}

// A guess that somebody makes of allowPrivate that means something else is an error that says what was probably meant.
func TestParseNetwork(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"192.168.1.0/24", ""},
		{"10.0.0.5/32", ""},
		{"fd12:3456::/32", ""},
		{"::/0", ""},
		{"192.168.1.77/8", "192.168.1.77/8 would be all of 192.0.0.0/8: write that, or 192.168.1.77/32 for this one machine"},
		{"10.1.2.3/24", "10.1.2.3/24 would be all of 10.1.2.0/24: write that, or 10.1.2.3/32 for this one machine"},
		{"fd00::1/8", "fd00::1/8 would be all of fd00::/8: write that, or fd00::1/128 for this one machine"},
		{"::ffff:10.0.0.0/104", "::ffff:10.0.0.0/104 is an IPv4 network in the form of IPv6: write 10.0.0.0/8"},
		{"::ffff:10.0.0.5/128", "::ffff:10.0.0.5/128 is an IPv4 network in the form of IPv6: write 10.0.0.5/32"},
		{"::ffff:0:0/64", "::ffff:0.0.0.0/64 is an IPv4 network in the form of IPv6: write 0.0.0.0/0"},
		{"10.0.0.1", "a network needs a prefix length: write 10.0.0.1/32 for this one machine"},
		{"fe80::1%eth0", "a network needs a prefix length: write fe80::1/128 for this one machine"},
		{"::ffff:10.0.0.1", "a network needs a prefix length: write 10.0.0.1/32 for this one machine"},
		{"home", `is no network; allowed: such as "192.168.1.0/24" or "10.0.0.5/32"`},
		{"10.0.0.0/33", `is no network; allowed: such as "192.168.1.0/24" or "10.0.0.5/32"`},
	} {
		p, err := ParseNetwork(c.text)
		switch {
		case c.want == "" && (err != nil || p.String() != c.text):
			t.Errorf("%s: %v, %v", c.text, p, err)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

// R-S19, D-083: what may be connected to.
func TestAddresses(t *testing.T) {
	refused := `0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254
		169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1
		192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16
		:: ::1 ::127.0.0.1 ::10.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe ::ffff:0:127.0.0.1 fc00::1 fd00::1 fd00:ec2::254
		fe80::1 fe80::1%eth0 fec0::1 ff02::1 64:ff9b::7f00:1 64:ff9b:1::a00:1 2001::1 2001:2::1 2001:db8::1 2002:7f00:1::1
		2002:808:808::1 3fff::1 100::1 4000::1 5f00::1`
	passed := `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 93.184.216.34 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 172.15.255.255 172.32.0.1
		192.0.1.1 192.167.255.255 192.169.0.1 198.17.255.255 198.20.0.1 203.0.112.1 203.0.114.1 223.255.255.255 ::ffff:8.8.8.8 64:ff9b::8.8.8.8
		2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450:4001::1 2620:fe::fe 2003::1 3ffe::1`
	open := NewGuard(nil, networktest.Offline())
	for a := range strings.FieldsSeq(refused) {
		if open.Reach(t.Context(), netip.MustParseAddr(a)) != Nowhere {
			t.Errorf("%s is let through", a)
		}
	}
	for a := range strings.FieldsSeq(passed) {
		if open.Reach(t.Context(), netip.MustParseAddr(a)) != PublicWeb {
			t.Errorf("%s is refused", a)
		}
	}
	// What is allowed, and what never is.
	g := NewGuard(prefixes("0.0.0.0/0 ::/0"), networktest.Offline())
	for a := range strings.FieldsSeq("10.0.0.1 127.0.0.1 ::1 fd00::1 ::ffff:192.168.1.1 2001:db8::1 fe80::1%eth0") {
		if g.Reach(t.Context(), netip.MustParseAddr(a)) != Opened {
			t.Errorf("%s is refused although it is allowed", a)
		}
	}
	for a := range strings.FieldsSeq("169.254.169.254 ::ffff:169.254.169.254 100.100.100.200 fd00:ec2::254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1 192.0.0.192") {
		if g.Reach(t.Context(), netip.MustParseAddr(a)) != Nowhere {
			t.Errorf("%s is let through since everything is allowed", a)
		}
	}
}

// nat64 is a resolver of a network where ipv4only.arpa has these IPv6 addresses.
func nat64(t *testing.T, addresses ...string) *net.Resolver {
	return networktest.NameServer(t, func(q dnsmessage.Question) (answers []dnsmessage.ResourceBody) {
		if q.Name.String() != "ipv4only.arpa." || q.Type != dnsmessage.TypeAAAA {
			return nil
		}
		for _, a := range addresses {
			answers = append(answers, &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(a).As16()})
		}
		return answers
	})
}
