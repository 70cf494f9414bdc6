package nats_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"parley/store/nats"
	"parley/store/nats/natstest"
	"parley/store/storetest"
)

// What keeps a Store from being opened says what to do, and tells no secret.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	guarded := natstest.Listening(t)
	guarded.Username, guarded.Password = "parley", "another"
	plain := natstest.Listening(t)
	plain.JetStream = false
	small := natstest.Listening(t)
	small.MaxPayload = 1024
	forbidding := natstest.Listening(t)
	forbidding.Users = []*server.User{{
		Username: "parley", Password: secret,
		Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.CREATE.>"}}},
	}}
	ports := natstest.FreePorts(t, 1)
	for name, c := range map[string]struct {
		server *server.Options
		cfg    nats.Config
		want   string
	}{
		"nobody there":     {nil, nats.Config{URL: natstest.AddressOf(ports)}, "start it, or correct store.url"},
		"wrong password":   {guarded, nats.Config{Credentials: "parley:" + secret}, "store.credentials: correct them"},
		"no credentials":   {guarded, nats.Config{}, "does not accept store.credentials"},
		"wrong token":      {guarded, nats.Config{Credentials: secret}, "does not accept store.credentials"},
		"no JetStream":     {plain, nats.Config{}, "switch JetStream on in its config"},
		"too few servers":  {natstest.Listening(t), nats.Config{Replicas: 3}, "add servers, or lower store.replicas"},
		"small messages":   {small, nats.Config{}, "set its max_payload to 1MB"},
		"too little right": {forbidding, nats.Config{Credentials: "parley:" + secret}, "permits its user too little"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.server != nil {
				c.cfg.URL = natstest.Start(t, c.server).ClientURL()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s, err := nats.Open(ctx, c.cfg)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			text := err.Error()
			if !strings.Contains(text, c.want) || strings.Contains(text, secret) || strings.Contains(text, "\n") {
				t.Errorf("error = %s\nwant %s, without a secret", text, c.want)
			}
		})
	}
	t.Run("too old", func(t *testing.T) {
		t.Parallel()
		_, err := nats.Open(t.Context(), nats.Config{URL: startOldServer(t)})
		if err == nil || !strings.Contains(err.Error(), "has version 2.11.9: update it to 2.12 or later") {
			t.Errorf("error = %v", err)
		}
	})
}

// startOldServer starts what greets as a server of an old version, and returns its address.
func startOldServer(t *testing.T) (address string) {
	t.Helper()
	l := natstest.Listen(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			const info = `{"server_id":"A","version":"2.11.9","headers":true,"max_payload":1048576}`
			fmt.Fprint(conn, "INFO "+info+"\r\nPONG\r\n")
			buf := make([]byte, 4096)
			for err == nil {
				_, err = conn.Read(buf)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return "nats://" + l.Addr().String()
}

// An authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{dir: t.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	a.key = newKey(t)
	a.write(t, "ca.pem", "CERTIFICATE", a.signed(t, a.cert, a.key))
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a authority) signed(t *testing.T, cert *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// issue writes a certificate and its key, and returns their paths.
func (a authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	own := newKey(t)
	der := a.signed(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, own)
	encoded, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return a.write(t, name+".pem", "CERTIFICATE", der), a.write(t, name+"-key.pem", "PRIVATE KEY", encoded)
}

func (a authority) write(t *testing.T, name, kind string, der []byte) (path string) {
	t.Helper()
	path = filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Servers may have certificates of a private authority, and want one of us.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	ca := filepath.Join(a.dir, "ca.pem")
	cert, key := a.issue(t, "server")
	secure, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: ca, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	o := natstest.Listening(t)
	o.TLS, o.TLSVerify, o.TLSConfig, o.TLSTimeout = true, true, secure, 5
	address := "tls://" + natstest.Start(t, o).Addr().String()
	ownCert, ownKey := a.issue(t, "gateway")
	s := openAt(t, nats.Config{URL: address, TLS: nats.TLS{CA: ca, Certificate: ownCert, Key: ownKey}})
	if _, err := s.Bucket("b").Put(t.Context(), "k", nil, 0); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		tls  nats.TLS
		want string
	}{
		"unknown authority": {nats.TLS{Certificate: ownCert, Key: ownKey}, "name its authority in store.tls.ca"},
		"no certificate":    {nats.TLS{CA: ca}, "in store.tls.certificate"},
		"no such file":      {nats.TLS{CA: ca + "x"}, "store.tls.ca"},
		"no PEM":            {nats.TLS{CA: writeText(t)}, "has no certificate in PEM"},
	} {
		_, err := nats.Open(t.Context(), nats.Config{URL: address, TLS: c.tls})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want %s", name, err, c.want)
		}
	}
	if secure.MinVersion != 0 && secure.MinVersion < tls.VersionTLS12 {
		t.Errorf("the test's server allows versions of TLS from %x", secure.MinVersion)
	}
}

func writeText(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(storetest.TempDir(t), "text")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Streams that were made otherwise get the settings that the Store needs.
func TestOpenAppliesSettings(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	js := jetStream(t, srv)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "parley-logs", Subjects: []string{"parley.log.>"}, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	l := openAt(t, nats.Config{URL: srv.ClientURL()}).Log("l")
	if _, err := l.Append(t.Context(), 0, []byte("one"), []byte("two")); err != nil {
		t.Error(err)
	}
	s, err := js.Stream(t.Context(), "parley-logs")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().Config; got.MaxBytes != 1<<20 || !got.AllowDirect || got.Discard != jetstream.DiscardNew {
		t.Errorf("the stream has %+v", got)
	}
}
