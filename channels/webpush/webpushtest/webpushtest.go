// Package webpushtest is a push service, and the browsers that use it, for tests. It is stricter than the real ones: it
// takes only what RFC 8030, 8291 and 8292 allow.
package webpushtest

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels/webpush"
)

// A Service is a push service on the loopback interface.
type Service struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	browsers map[string]*Browser // by path
}

// A Browser is a subscription to the Service.
type Browser struct {
	Subscription webpush.Subscription
	Got          chan string // what arrived, decrypted

	serverKey string
	private   *ecdh.PrivateKey
	auth      []byte

	mu      sync.Mutex
	answers []int // statuses of the next requests
}

// Fail has the next requests answered with statuses.
func (b *Browser) Fail(statuses ...int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = statuses
}

// New starts a Service, which ends with t.
func New(t testing.TB) *Service {
	s := &Service{t: t, browsers: map[string]*Browser{}}
	s.server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.server.Close)
	return s
}

// Client returns a client that reaches the Service.
func (s *Service) Client() *http.Client { return s.server.Client() }

// Subscribe returns a new browser, which takes only what the owner of serverKey sends.
func (s *Service) Subscribe(serverKey string) *Browser {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	b := &Browser{Got: make(chan string, 100), serverKey: serverKey, private: private, auth: make([]byte, 16)}
	_, _ = rand.Read(b.auth)
	path := "/push/" + rand.Text()
	b.Subscription.Endpoint = s.server.URL + path
	b.Subscription.Keys.P256dh = base64.RawURLEncoding.EncodeToString(private.PublicKey().Bytes())
	b.Subscription.Keys.Auth = base64.RawURLEncoding.EncodeToString(b.auth)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = b
	return b
}

func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	b := s.browsers[r.URL.Path]
	s.mu.Unlock()
	if b == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	text, err := b.read(r, s.server.URL)
	if err != nil {
		s.t.Errorf("the push service: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.answers) > 0 {
		status := b.answers[0]
		b.answers = b.answers[1:]
		w.WriteHeader(status)
		return
	}
	b.Got <- text
	w.WriteHeader(http.StatusCreated)
}

// read returns what r says to b, or what is wrong with it.
func (b *Browser) read(r *http.Request, origin string) (string, error) {
	ttl, err := strconv.Atoi(r.Header.Get("TTL"))
	topic := r.Header.Get("Topic")
	_, badTopic := base64.RawURLEncoding.DecodeString(topic)
	switch {
	case r.Method != http.MethodPost:
		return "", fmt.Errorf("method %s", r.Method)
	case err != nil || ttl < 0:
		return "", fmt.Errorf("TTL %q", r.Header.Get("TTL"))
	case r.Header.Get("Content-Encoding") != "aes128gcm":
		return "", fmt.Errorf("encoding %q", r.Header.Get("Content-Encoding"))
	case len(topic) > 32 || badTopic != nil:
		return "", fmt.Errorf("topic %q", topic)
	case !strings.Contains("very-low low normal high", cmp.Or(r.Header.Get("Urgency"), "normal")):
		return "", fmt.Errorf("urgency %q", r.Header.Get("Urgency"))
	}
	if err := b.checkToken(r.Header.Get("Authorization"), origin); err != nil {
		return "", err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 4097))
	if err != nil || len(body) > 4096 {
		return "", fmt.Errorf("body of %d bytes: %w", len(body), err)
	}
	return b.decrypt(body)
}

// checkToken checks a header as RFC 8292 wants it.
func (b *Browser) checkToken(header, origin string) error {
	rest, isVapid := strings.CutPrefix(header, "vapid t=")
	token, key, _ := strings.Cut(rest, ", k=")
	parts := strings.Split(token, ".")
	if !isVapid || len(parts) != 3 || key != b.serverKey {
		return fmt.Errorf("authorization %q, of a browser that subscribed to %s", header, b.serverKey)
	}
	point, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil {
		return err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return err
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(signature) != 64 {
		return fmt.Errorf("signature %q", parts[2])
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return fmt.Errorf("the signature of %q is wrong", token)
	}
	var head struct{ Typ, Alg string }
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	for i, into := range []any{&head, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return err
		}
	}
	left := time.Until(time.Unix(claims.Exp, 0))
	if head.Typ != "JWT" || head.Alg != "ES256" || claims.Aud != origin || left <= 0 || left > 24*time.Hour ||
		!strings.HasPrefix(claims.Sub, "mailto:") && !strings.HasPrefix(claims.Sub, "https://") {
		return fmt.Errorf("token %+v %+v, %s left", head, claims, left)
	}
	return nil
}

// decrypt decrypts a body of one record, as RFC 8188 and 8291 have it.
func (b *Browser) decrypt(body []byte) (string, error) {
	if len(body) < 86 || body[20] != 65 || binary.BigEndian.Uint32(body[16:20]) < uint32(len(body)-86) {
		return "", fmt.Errorf("the header of the body is wrong: % x", body[:min(len(body), 86)])
	}
	theirs, err := ecdh.P256().NewPublicKey(body[21:86])
	if err != nil {
		return "", err
	}
	shared, err := b.private.ECDH(theirs)
	if err != nil {
		return "", err
	}
	info := "WebPush: info\x00" + string(b.private.PublicKey().Bytes()) + string(body[21:86])
	secret, err := hkdf.Key(sha256.New, shared, b.auth, info, 32)
	if err != nil {
		return "", err
	}
	key, err := hkdf.Key(sha256.New, secret, body[:16], "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return "", err
	}
	nonce, err := hkdf.Key(sha256.New, secret, body[:16], "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return "", err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	plain, err := box.Open(nil, nonce, body[86:], nil)
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(plain), "\x00")
	if !strings.HasSuffix(text, "\x02") {
		return "", fmt.Errorf("the last record does not end with its delimiter: %q", plain)
	}
	return strings.TrimSuffix(text, "\x02"), nil
}
