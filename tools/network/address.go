// Package network decides which internet addresses tools and sandboxed programs may connect to: those of the
// public web, and private networks that an owner has allowed (R-S19). A Guard judges addresses, not names: a
// name must be resolved first, and the address that was judged is the one to connect to.
package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// public has the addresses of the public web: all of IPv4, and the global unicast
// addresses of IPv6. private has the exceptions within them (R-S19, D-083).
var (
	public  = prefixes("0.0.0.0/0 2000::/3")
	private = prefixes(
		"0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 " +
			"192.168.0.0/16 " +
			"198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20",
	)
)

// metadata are the addresses of metadata services, which give away a machine's
// keys: those of AWS, Azure, Google, Oracle and most others (169.254.0.0/16),
// Alibaba, Volcengine, UCloud, Azure's host and Oracle's old ones; then those of
// AWS, Google, Scaleway, Akamai and Alibaba on IPv6. NewGuard allows none
// of them.
var metadata = prefixes(
	"169.254.0.0/16 100.100.100.200/32 100.96.0.96/32 100.80.80.80/32 168.63.129.16/32 192.0.0.192/32 " +
		"fd00:ec2::/32 fd20:ce::/32 fd00:42::42/128 fd00:a9fe:a9fe::/48 fd00:100::100:200/128",
)

// metadataEnd is 169.254.169.254 as the end of an IPv6 address. Such an address
// belongs to a metadata service, whatever comes before: OpenStack's at
// fe80::a9fe:a9fe, Oracle's at fd00:c1::a9fe:a9fe, or any behind an unknown
// translator.
var metadataEnd = []byte{169, 254, 169, 254}

// tunnels are IPv6 addresses that stand for an IPv4 address by host translation,
// Teredo or 6to4. Today they only serve to bypass the other rules, so NewGuard
// allows none of them either.
var tunnels = prefixes("::ffff:0:0:0/96 2001::/32 2002::/16")

// NAT64 has two prefixes that are the same everywhere. Addresses in the first end with
// the IPv4 address they stand for; in the second, each network chooses its own form.
var (
	nat64WellKnown = netip.MustParsePrefix("64:ff9b::/96")
	nat64Local     = netip.MustParsePrefix("64:ff9b:1::/48")
)

func prefixes(list string) (ps []netip.Prefix) {
	for p := range strings.FieldsSeq(list) {
		ps = append(ps, netip.MustParsePrefix(p))
	}
	return ps
}

func within(ps []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ParseNetwork parses a network that an owner allows. An error suggests what was
// probably meant: a network that is larger or smaller than it looks would allow
// too much or nothing.
func ParseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if a, isAddress := netip.ParseAddr(text); isAddress == nil {
		a = a.WithZone("").Unmap()
		return p, fmt.Errorf("a network needs a prefix length: write %s for this one machine",
			netip.PrefixFrom(a, a.BitLen()))
	}
	switch {
	case err != nil:
		return p, errors.New(`is no network; allowed: such as "192.168.1.0/24" or "10.0.0.5/32"`)
	case p.Addr().Is4In6():
		return p, fmt.Errorf("%s is an IPv4 network in the form of IPv6: write %s", p,
			netip.PrefixFrom(p.Addr().Unmap(), max(p.Bits()-96, 0)).Masked())
	case p != p.Masked():
		return p, fmt.Errorf("%s would be all of %s: write that, or %s for this one machine", p, p.Masked(),
			netip.PrefixFrom(p.Addr(), p.Addr().BitLen()))
	}
	return p, nil
}

// A Reach says which connections to an address are allowed.
type Reach int

// Which connections are allowed.
const (
	Nowhere   Reach = iota // none
	PublicWeb              // to the ports of the web
	Opened                 // to any port: the address is in a private network that is allowed
)

// A Guard judges addresses. It is safe for concurrent use.
type Guard struct {
	allow []netip.Prefix
	nat64 nat64Finder
}

// NewGuard returns a Guard that allows the public web and the networks of allow, but for metadata services.
// With r, which may be nil, it finds out how the machine's network reaches IPv4 addresses by IPv6.
func NewGuard(allow []netip.Prefix, r *net.Resolver) *Guard {
	return &Guard{allow: allow, nat64: nat64Finder{lookup: cmp.Or(r, net.DefaultResolver).LookupNetIP}}
}

// Reach returns which connections to a are allowed.
func (g *Guard) Reach(ctx context.Context, a netip.Addr) Reach {
	a = a.WithZone("").Unmap() // a prefix never contains an address with a zone
	if within(metadata, a) || within(tunnels, a) {
		return Nowhere
	}
	if a.Is4() {
		return g.plainReach(a)
	}
	if nat64WellKnown.Contains(a) {
		return g.Reach(ctx, embeddedIPv4(a, nat64WellKnown.Bits()))
	}
	own, local := g.plainReach(a), nat64Local.Contains(a)
	if b := a.AsSlice(); slices.Equal(b[12:], metadataEnd) || own == Nowhere && !local {
		return Nowhere
	}
	translated := Nowhere
	for _, p := range g.nat64.prefixes(ctx) {
		if !p.Contains(a) {
			continue
		}
		if translated = g.Reach(ctx, embeddedIPv4(a, p.Bits())); translated == Nowhere {
			return Nowhere
		}
	}
	switch {
	case translated != Nowhere:
		return translated
	case local: // it is unknown what this network translates it to
		return Nowhere
	case holdsIPv4(a) && g.Reach(ctx, embeddedIPv4(a, 96)) == Nowhere:
		return Nowhere
	}
	return own
}

// RefuseMetadata is a ControlContext of a dialer that refuses connections to the metadata services of clouds,
// whatever name leads there: its owner may change that at any time.
func RefuseMetadata(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	a := ap.Addr().WithZone("").Unmap()
	if nat64WellKnown.Contains(a) {
		a = embeddedIPv4(a, nat64WellKnown.Bits())
	}
	if within(metadata, a) || a.Is6() && slices.Equal(a.AsSlice()[12:], metadataEnd) {
		return fmt.Errorf("%s hands out the keys of this machine", ap)
	}
	return nil
}

// plainReach is reach for an address that stands for itself.
func (g *Guard) plainReach(a netip.Addr) Reach {
	switch {
	case within(g.allow, a):
		return Opened
	case within(public, a) && !within(private, a):
		return PublicWeb
	}
	return Nowhere
}

// holdsIPv4 reports whether a has the form of an IPv4-compatible or an ISATAP
// address, whose last four bytes are an IPv4 address.
func holdsIPv4(a netip.Addr) bool {
	b := a.As16()
	compatible := !slices.ContainsFunc(b[:12], func(x byte) bool { return x != 0 }) && a != netip.IPv6Loopback()
	isatap := b[8]&^3 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe // 3: the bits for "global" and "group"
	return compatible || isatap
}

// embeddedIPv4 returns the IPv4 address in a after the first bits, which are 32,
// 40, 48, 56, 64 or 96 (RFC 6052, section 2.2). Its bytes follow each other, but
// skip the ninth byte of a, which is always 0.
func embeddedIPv4(a netip.Addr, bits int) netip.Addr {
	b := a.As16()
	var v4 [4]byte
	at := bits / 8
	for i := range v4 {
		if at == 8 {
			at++
		}
		v4[i] = b[at]
		at++
	}
	return netip.AddrFrom4(v4)
}

const (
	nat64TTL        = 10 * time.Minute // for which the prefixes that were found are used
	nat64RetryDelay = 30 * time.Second // after a failed lookup
	nat64Timeout    = 2 * time.Second  // of one lookup
)

// A nat64Finder finds the prefixes with which a network without IPv4 reaches IPv4
// addresses. The name ipv4only.arpa only has the IPv4 addresses below, so if it
// has an IPv6 address, the name server made that with such a prefix (RFC 7050).
type nat64Finder struct {
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu    sync.Mutex
	found []netip.Prefix
	until time.Time // when found expires
}

var (
	nat64Lengths = []int{32, 40, 48, 56, 64, 96}
	ipv4Only     = prefixes("192.0.0.170/31")
)

// prefixes returns the prefixes in use. If the name server cannot be asked, they
// are the last ones known.
func (f *nat64Finder) prefixes(ctx context.Context) []netip.Prefix {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.until) {
		return f.found
	}
	// The lookup goes on if ctx ends, because other calls use the answer too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nat64Timeout)
	defer cancel()
	addrs, err := f.lookup(ctx, "ip6", "ipv4only.arpa")
	if dns, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !dns.IsNotFound) {
		f.until = time.Now().Add(nat64RetryDelay)
		return f.found
	}
	f.found = nil
	f.until = time.Now().Add(nat64TTL)
	for _, a := range addrs {
		for _, bits := range nat64Lengths {
			if a.Is6() && !a.Is4In6() && within(ipv4Only, embeddedIPv4(a, bits)) {
				f.found = append(f.found, netip.PrefixFrom(a, bits).Masked())
			}
		}
	}
	return f.found
}

// IsObfuscatedIP reports whether host is an IPv4 address in a form, such as decimal, octal or
// hex, that resolvers interpret differently.
func IsObfuscatedIP(host string) bool {
	_, err := netip.ParseAddr(host)
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	return err != nil && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
}
