// Package webpush sends messages to browsers that are not there, by the push services of their makers: encrypted,
// so that only the browser can read them (RFC 8291), and signed, so that only who the browser has subscribed to
// can send them (RFC 8292).
package webpush

import (
	"bytes"
	"cmp"
	"context"
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
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// MaxBody is how many bytes a message may have: what any push service takes, less what encryption adds.
	MaxBody = 3900

	recordSize    = 4096
	saltSize      = 16
	authSize      = 16
	publicKeySize = 65 // of a point on P-256, uncompressed
	keySize       = 32

	tokenLifetime  = 12 * time.Hour // services take 24 at most, by their own clock
	requestTimeout = 20 * time.Second
	maxAnswer      = 1 << 10 // bytes that are read of what a service says
	maxEndpoint    = 1 << 10 // bytes
)

// A Key signs messages. Browsers subscribe to its public part, so it must last as long as their subscriptions.
type Key struct{ private *ecdsa.PrivateKey }

// NewKey returns a new Key.
func NewKey() (Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return Key{private}, err
}

// ParseKey returns the Key that Bytes returned.
func ParseKey(raw []byte) (Key, error) {
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	return Key{private}, err
}

// Bytes returns k, to be kept secret.
func (k Key) Bytes() ([]byte, error) { return k.private.Bytes() }

// Public returns what browsers subscribe to, as they want it: applicationServerKey.
func (k Key) Public() string {
	point, _ := k.private.PublicKey.Bytes() // a key that was generated or parsed has one
	return base64.RawURLEncoding.EncodeToString(point)
}

// A Subscription is where a browser is reached. It is what its PushManager returns.
type Subscription struct {
	Endpoint string `json:"endpoint"` // a secret: who knows it can send what the key has signed
	Keys     struct {
		P256dh string `json:"p256dh"`
		Auth   string `json:"auth"`
	} `json:"keys"`
}

// Check returns what is wrong with s.
func (s Subscription) Check() error {
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || len(s.Endpoint) > maxEndpoint {
		return errors.New("the endpoint must be an https address")
	}
	_, _, err = s.keys()
	return err
}

// keys returns the browser's public key and the secret that it shares with us.
func (s Subscription) keys() (*ecdh.PublicKey, []byte, error) {
	point, err := decode(s.Keys.P256dh)
	if err != nil {
		return nil, nil, fmt.Errorf("p256dh: %w", err)
	}
	public, err := ecdh.P256().NewPublicKey(point)
	if err != nil {
		return nil, nil, fmt.Errorf("p256dh: %w", err)
	}
	auth, err := decode(s.Keys.Auth)
	if err != nil || len(auth) != authSize {
		return nil, nil, fmt.Errorf("auth must have %d bytes in base64url", authSize)
	}
	return public, auth, nil
}

// decode decodes base64url with or without padding: browsers differ.
func decode(text string) ([]byte, error) {
	for len(text) > 0 && text[len(text)-1] == '=' {
		text = text[:len(text)-1]
	}
	return base64.RawURLEncoding.DecodeString(text)
}

// A Message is what a browser is sent.
type Message struct {
	Body   []byte
	TTL    time.Duration // how long the service keeps it for a browser that is away
	Topic  string        // it replaces what was sent with the same topic and is waiting; up to 32 letters
	Urgent bool          // it wakes a device that saves power
}

// An Error is the answer of a push service that did not take a message.
type Error struct {
	Status int
	Text   string
	After  time.Duration // when to try again, as the service says; 0: it does not say
}

func (e *Error) Error() string {
	return fmt.Sprintf("the push service answered %d: %q", e.Status, e.Text)
}

// IsGone reports whether err says that the subscription has ended.
func IsGone(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Status == http.StatusNotFound || e.Status == http.StatusGone)
}

// RetryAfter reports whether the message may be taken later, and when to try if the service says that.
func RetryAfter(err error) (after time.Duration, retry bool) {
	e, ok := errors.AsType[*Error](err)
	if !ok { // it was not reached
		return 0, true
	}
	return e.After, e.Status == http.StatusTooManyRequests || e.Status >= 500
}

// A Sender sends messages. It is safe for concurrent use.
type Sender struct {
	Key     Key
	Contact string       // an address by which operators of push services reach ours: https: or mailto:
	Client  *http.Client // decides what may be reached, and follows no redirects
}

// Send hands m over to the push service of sub. The error is an *Error if that has refused it.
func (s *Sender) Send(ctx context.Context, sub Subscription, m Message) error {
	body, err := encrypt(sub, m.Body, nil, nil)
	if err != nil {
		return err
	}
	token, err := s.token(sub.Endpoint, time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, sub.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("Content-Encoding", "aes128gcm")
	r.Header.Set("Authorization", "vapid t="+token+", k="+s.Key.Public())
	r.Header.Set("TTL", strconv.Itoa(int(m.TTL.Seconds())))
	r.Header.Set("Urgency", map[bool]string{true: "high", false: "normal"}[m.Urgent])
	if m.Topic != "" {
		r.Header.Set("Topic", m.Topic)
	}
	answer, err := s.Client.Do(r)
	if err != nil {
		return fmt.Errorf("reach the push service %s: %w", r.URL.Host, withoutURL(err))
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // it is for the log only
	if answer.StatusCode/100 == 2 {
		return nil
	}
	after, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // services that send a date are asked by our own pace
	return &Error{Status: answer.StatusCode, Text: string(said), After: time.Duration(max(after, 0)) * time.Second}
}

// withoutURL returns err without the address that was called, which is a secret.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// token returns the token that says to the service of endpoint who we are.
func (s *Sender) token(endpoint string, now time.Time) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"aud": u.Scheme + "://" + u.Host,
		"exp": now.Add(tokenLifetime).Unix(),
		"sub": s.Contact,
	})
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(claims)
	digest := sha256.Sum256([]byte(signed))
	x, y, err := ecdsa.Sign(rand.Reader, s.Key.private, digest[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 2*keySize)
	x.FillBytes(signature[:keySize])
	y.FillBytes(signature[keySize:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// encrypt returns body as only the browser of sub can read it. Tests pass our key of this one message, and the salt.
func encrypt(sub Subscription, body []byte, own *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	if len(body) > MaxBody {
		return nil, fmt.Errorf("a message has %d bytes, and %d is the limit", len(body), MaxBody)
	}
	theirs, auth, err := sub.keys()
	if err != nil {
		return nil, err
	}
	if own == nil {
		if own, err = ecdh.P256().GenerateKey(rand.Reader); err != nil {
			return nil, err
		}
		salt = make([]byte, saltSize)
		_, _ = rand.Read(salt) // never fails
	}
	shared, err := own.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	ours := own.PublicKey().Bytes()
	info := "WebPush: info\x00" + string(theirs.Bytes()) + string(ours)
	secret, err := hkdf.Key(sha256.New, shared, auth, info, keySize)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce, bad := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: nonce\x00", 12)
	if err := cmp.Or(err, bad); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	box, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	sealed := bytes.NewBuffer(salt[:saltSize:saltSize])
	sealed.Write(binary.BigEndian.AppendUint32(nil, recordSize))
	sealed.WriteByte(publicKeySize)
	sealed.Write(ours)
	last := append(bytes.Clone(body), 2) // the delimiter of the last record
	return box.Seal(sealed.Bytes(), nonce, last, nil), nil
}
