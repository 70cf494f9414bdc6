package nats

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/store"
	"parley/store/nats/tunnel"
)

// Servers before this version do not store batches.
const (
	minMajor = 2
	minMinor = 12
)

// minPayload is the least size of messages that a server must take: a piece with its headers.
const minPayload = pieceSize + 64<<10

// duplicateWindow is how long a server knows again a write that is tried again. It is longer than patience.
const duplicateWindow = 2 * time.Minute

// Codes of errors of JetStream that have another reason in Open than later.
const (
	codeNoPeers      = 10005
	codeNoCluster    = 10074
	codeOff          = 10076
	codeOffAccount   = 10039
	codeNoStream     = 10059
	codeNoBatches    = 10174
	codeNoNewSetting = 10025
)

// Open opens the Store of cfg, with other processes that may have opened it, and creates its streams if there are none.
// Its errors say what to do.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.applySettings(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// open connects to the servers and creates the streams if there are none. It changes nothing that is there.
func open(ctx context.Context, cfg Config) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := newStore(cfg)
	if err := s.connect(cfg); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	// A server without JetStream may be one that has just started.
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	defer context.AfterFunc(s.permitted, cancel)()
	if err := s.prepare(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(s.explain(cfg, err), s.Close()))
	}
	return s, nil
}

// prepare checks the servers and creates the streams.
func (s *Store) prepare(ctx context.Context, cfg Config) error {
	if err := s.checkServers(ctx); err != nil {
		return err
	}
	return s.eachStream(cfg, func(want jetstream.StreamConfig) error { return s.create(ctx, want) })
}

// applySettings gives the streams the settings of cfg, and notes how far they go: what comes later is of this process.
func (s *Store) applySettings(ctx context.Context, cfg Config) error {
	err := s.eachStream(cfg, func(want jetstream.StreamConfig) error { return s.update(ctx, want) })
	if err != nil {
		return s.explain(cfg, err)
	}
	if s.opened.buckets, err = s.stream("buckets").lastSeq(ctx); err != nil {
		return err
	}
	s.opened.queues, err = s.stream("queues").lastSeq(ctx)
	return err
}

func (c Config) withDefaults() Config {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Prefix = cmp.Or(c.Prefix, "parley")
	c.Replicas = cmp.Or(c.Replicas, 1)
	return c
}

// connect connects s, of which only Close may be called before.
func (s *Store) connect(cfg Config) error {
	host, _ := os.Hostname() // "" is as good
	s.self = fmt.Sprintf("process %d on %s", os.Getpid(), host)
	s.address = cfg.place()
	conn, err := cfg.connect(s)
	if err != nil {
		return s.explain(cfg, err)
	}
	s.conn = conn
	s.tunnel = tunnel.New(bus{conn}, s.prefix+".tunnel", s.Usable)
	return nil
}

// checkServers returns an error if the servers cannot be used.
func (s *Store) checkServers(ctx context.Context) error {
	if version := s.conn.ConnectedServerVersion(); isTooOld(version) {
		return fmt.Errorf("NATS at %s has version %s: update it to %d.%d or later",
			s.address, version, minMajor, minMinor)
	}
	if most := s.conn.MaxPayload(); most < minPayload {
		return fmt.Errorf("NATS at %s takes messages of %d bytes: set its max_payload to 1MB", s.address, most)
	}
	var account struct{}
	if err := s.request(ctx, "INFO", struct{}{}, &account); err != nil {
		return fmt.Errorf("%w: %w", errNoJetStream, err)
	}
	return nil
}

// eachStream calls do with what each stream needs.
func (s *Store) eachStream(cfg Config, do func(want jetstream.StreamConfig) error) error {
	for _, want := range []jetstream.StreamConfig{
		{
			Name: s.stream("buckets").name, AllowRollup: true,
			Subjects: []string{s.prefix + ".bucket.>", s.prefix + ".lock.>", s.prefix + ".holder.>"},
		},
		{Name: s.stream("logs").name, Subjects: []string{s.prefix + ".log.>"}, AllowDirect: true},
		{
			Name: s.stream("queues").name, Subjects: []string{s.prefix + ".work.>", s.prefix + ".seen.>"},
			AllowRollup: true, AllowMsgTTL: true,
		},
	} {
		want.Replicas = cfg.Replicas
		if err := do(want); err != nil {
			return fmt.Errorf("stream %s: %w", want.Name, err)
		}
	}
	return nil
}

var errNoJetStream = errors.New("JetStream does not answer")

// openTimeout is how long Open waits for servers that say that they are not ready.
const openTimeout = 10 * time.Second

// A streamInfo is what a server says of a stream.
type streamInfo struct {
	Config jetstream.StreamConfig `json:"config"`
}

// Format is the number of the layout that this version understands, which each stream has in its metadata. Whoever
// changes the layout so that an older version would misread it raises it.
const Format = 1

// formatKey is that of the number in the metadata.
const formatKey = "parley-format"

// ErrNewer says that a newer version has written the Store. Nothing was changed.
var ErrNewer = errors.New("run the newer version of Parley that has written it")

// checkFormat returns an error that is ErrNewer if a newer version has made the stream, or changed it.
func checkFormat(c jetstream.StreamConfig) error {
	if has := formatOf(c); has > Format {
		return fmt.Errorf("it has format %d, and this version understands %d at most: %w", has, Format, ErrNewer)
	}
	return nil
}

// formatOf returns the number of the layout; streams without one have that of Format 1.
func formatOf(c jetstream.StreamConfig) int {
	n, _ := strconv.Atoi(c.Metadata[formatKey])
	return max(n, 1)
}

// create creates the stream if there is none.
func (s *Store) create(ctx context.Context, want jetstream.StreamConfig) error {
	var has streamInfo
	err := s.request(ctx, "STREAM.INFO."+want.Name, struct{}{}, &has)
	if err == nil {
		return checkFormat(has.Config)
	}
	if !isWithoutStreams(err) {
		return err
	}
	want.Metadata = map[string]string{formatKey: strconv.Itoa(Format)}
	want.AllowAtomicPublish = true
	want.Discard = jetstream.DiscardNew
	want.Duplicates = duplicateWindow
	want.MaxMsgs = -1
	want.MaxBytes = -1
	want.MaxMsgsPerSubject = -1
	return s.request(ctx, "STREAM.CREATE."+want.Name, want, nil)
}

// update gives the stream the settings that the Store needs. It leaves alone others, which are the owner's, such as a
// limit of bytes or where to place it.
func (s *Store) update(ctx context.Context, want jetstream.StreamConfig) error {
	var has streamInfo
	if err := s.request(ctx, "STREAM.INFO."+want.Name, struct{}{}, &has); err != nil {
		return err
	}
	if err := checkFormat(has.Config); err != nil { // it may have been changed while this process stood by
		return err
	}
	next := has.Config
	next.Metadata = maps.Clone(next.Metadata)
	if next.Metadata == nil {
		next.Metadata = map[string]string{}
	}
	next.Metadata[formatKey] = strconv.Itoa(Format)
	next.Subjects = want.Subjects
	next.Replicas = want.Replicas
	next.AllowRollup = want.AllowRollup
	next.AllowDirect = want.AllowDirect
	next.AllowMsgTTL = want.AllowMsgTTL
	next.AllowAtomicPublish = true
	next.Discard = jetstream.DiscardNew // a stream that is full removes nothing
	next.Duplicates = max(next.Duplicates, duplicateWindow)
	next.MaxMsgs = -1
	next.MaxAge = 0
	next.MaxMsgsPerSubject = -1
	if isSame(has.Config, next) {
		return nil
	}
	return s.request(ctx, "STREAM.UPDATE."+want.Name, next, nil)
}

// isSame compares what ensure sets.
func isSame(a, b jetstream.StreamConfig) bool {
	return strings.Join(a.Subjects, " ") == strings.Join(b.Subjects, " ") && a.Replicas == b.Replicas &&
		a.AllowRollup == b.AllowRollup && a.AllowDirect == b.AllowDirect && a.AllowMsgTTL == b.AllowMsgTTL &&
		a.Metadata[formatKey] == b.Metadata[formatKey] &&
		a.AllowAtomicPublish == b.AllowAtomicPublish && a.Discard == b.Discard && a.Duplicates == b.Duplicates &&
		a.MaxMsgs == b.MaxMsgs && a.MaxAge == b.MaxAge && a.MaxMsgsPerSubject == b.MaxMsgsPerSubject
}

func isTooOld(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return err == nil && err2 == nil && (a < minMajor || a == minMajor && b < minMinor)
}

// explain says what to do about an error of Open.
func (s *Store) explain(cfg Config, err error) error {
	var unverified *tls.CertificateVerificationError
	refused, _ := errors.AsType[*apiError](err)
	if refused == nil {
		refused = &apiError{}
	}
	switch {
	case errors.As(err, &unverified):
		return fmt.Errorf("the certificate of NATS at %s is not trusted: name its authority in store.tls.ca: %w",
			s.address, err)
	case isRefusedByTLS(err):
		return fmt.Errorf("NATS at %s refuses the encrypted connection: "+
			"name a certificate that it trusts in store.tls.certificate and store.tls.key: %w", s.address, err)
	case errors.Is(err, client.ErrAuthorization), errors.Is(err, client.ErrAuthExpired):
		return fmt.Errorf("NATS at %s does not accept store.credentials: correct them: %w", s.address, err)
	case s.permitted.Err() != nil:
		return fmt.Errorf("NATS at %s permits its user too little: permit %s.>, $JS.API.>, $JS.ACK.> and _INBOX.>: %w",
			s.address, s.prefix, context.Cause(s.permitted))
	case errors.Is(err, errNoJetStream):
		return fmt.Errorf("NATS at %s: switch JetStream on in its config, for this account, "+
			"or start more of its servers: %w", s.address, err)
	case refused.Code == codeNoPeers, refused.Code == codeNoCluster:
		return fmt.Errorf("NATS at %s has too few servers with JetStream and room for %d replicas: "+
			"add servers, or lower store.replicas: %w", s.address, cfg.Replicas, err)
	case errors.Is(err, store.ErrFull):
		return fmt.Errorf("NATS at %s has no room for the store: raise the limits of JetStream: %w", s.address, err)
	case s.conn == nil:
		return fmt.Errorf("NATS cannot be reached at %s: start it, or correct store.url: %w", s.address, err)
	case isTemporary(err):
		return fmt.Errorf("NATS at %s is not ready: look at its log: %w", s.address, err)
	}
	return err
}

// isRefusedByTLS reports whether a server has ended a connection for want of a certificate. Whether that arrives before
// the end of the connection is chance.
func isRefusedByTLS(err error) bool {
	alert, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, client.ErrTLS) || ok && alert.Op == "remote error"
}
