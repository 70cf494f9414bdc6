package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	client "github.com/nats-io/nats.go"

	"parley/lazyregexp"
)

// Config says which servers to use. The fields with tags are keys of store in config.json (see package config).
type Config struct {
	// URL is the address of a server, or those of several with commas between them.
	URL string `json:"url" secret:"address"`
	// Credentials are the contents of a file of credentials, or a name and a password with a colon between them, or a
	// token.
	Credentials string `json:"credentials" secret:"yes"`
	// Prefix begins the names of streams and subjects. Who has another one has another Store.
	Prefix string `json:"prefix" default:"parley" plain:"yes"`
	// Replicas is how many servers have each message.
	Replicas int `json:"replicas" default:"1" from:"1" to:"5"`
	TLS      TLS `json:"tls"`

	Log *slog.Logger // nil: log nothing

	// For tests:
	options   []client.Option
	leaseTime time.Duration // 0 stands for leaseTime
}

// TLS says how to know the servers, and how they know us. Its fields are paths of PEM files.
type TLS struct {
	CA          string `json:"ca" plain:"yes"` // "" stands for the authorities that the machine trusts
	Certificate string `json:"certificate" plain:"yes"`
	Key         string `json:"key" plain:"yes"` // of Certificate
}

var (
	prefixForm = lazyregexp.New(`^[A-Za-z0-9_-]{1,32}$`)
	schemes    = []string{"nats", "tls", "ws", "wss"}
)

// Check reports values that have the right type but cannot work.
func (c *Config) Check(report func(key, problem string)) {
	for _, address := range c.addresses() {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
			report("url", `must be the address of a server, such as "nats://127.0.0.1:4222", or several with commas`)
			break
		}
	}
	if !prefixForm.MatchString(c.Prefix) {
		report("prefix", "is made of up to 32 letters, digits, - and _")
	}
	if (c.TLS.Certificate == "") != (c.TLS.Key == "") {
		report("tls", "certificate and key need each other")
	}
}

func (c *Config) addresses() []string {
	all := strings.Split(c.URL, ",")
	for i, address := range all {
		all[i] = strings.TrimSpace(address)
	}
	return all
}

// place returns the addresses without what a login may be in.
func (c *Config) place() string {
	var places []string
	for _, address := range c.addresses() {
		u, err := url.Parse(address)
		if err != nil {
			continue // the text of the error may hold a login
		}
		places = append(places, u.Host)
	}
	return strings.Join(places, ", ")
}

// connect connects to the servers.
func (c *Config) connect(s *Store) (*client.Conn, error) {
	options := []client.Option{
		client.Name("parley " + s.self),
		client.Timeout(attemptTimeout),
		client.MaxReconnects(-1),
		client.ReconnectWait(maxDelay / 4),
		client.ReconnectBufSize(-1), // what cannot be sent now is tried again by whoever wants it sent
		client.IgnoreAuthErrorAbort(),
		client.DisconnectErrHandler(func(_ *client.Conn, err error) { // one call after the other
			s.renewLink()
			if err != nil {
				s.log.Warn("connection to NATS lost", "at", s.address, "err", err)
			}
		}),
		client.ReconnectHandler(func(conn *client.Conn) {
			s.log.Info("connected to NATS again", "server", conn.ConnectedServerName())
		}),
		client.ErrorHandler(func(_ *client.Conn, _ *client.Subscription, err error) {
			if errors.Is(err, client.ErrPermissionViolation) {
				s.deny(err)
			}
			s.log.Warn("NATS reports an error", "at", s.address, "err", err)
		}),
		client.ClosedHandler(func(*client.Conn) { close(s.ended) }),
	}
	switch name, password, login := strings.Cut(c.Credentials, ":"); {
	case c.Credentials == "":
	case strings.Contains(c.Credentials, "-----BEGIN"):
		options = append(options, client.UserCredentialBytes([]byte(c.Credentials)))
	case login:
		options = append(options, client.UserInfo(name, password))
	default:
		options = append(options, client.Token(c.Credentials))
	}
	secure, err := c.TLS.config()
	if err != nil {
		return nil, err
	}
	if secure != nil {
		options = append(options, client.Secure(secure))
	}
	return client.Connect(c.URL, append(options, c.options...)...)
}

// config returns nil if nothing is said: the address decides then.
func (t TLS) config() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("store.tls.ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("store.tls.ca: %s has no certificate in PEM", t.CA)
		}
	}
	if t.Certificate != "" {
		own, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fmt.Errorf("store.tls.certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{own}
	}
	return cfg, nil
}
