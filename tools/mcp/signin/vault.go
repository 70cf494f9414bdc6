package signin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

func (s *SignIn) bucket() store.Bucket { return s.config.Store.Bucket(store.BucketMCPSignIns) }

// What the bucket has, by how keys begin, besides challenges.
const (
	tokenPrefix    = "token/"
	questionPrefix = "question/" // those that are open
)

// storeKey is the key of the record of k in the store.
func (k key) storeKey() string { return tokenPrefix + k.server + "\x00" + string(k.who) }

// An Account is a sign-in of a person to a server.
type Account struct {
	Server  string
	Who     chat.Person
	Until   time.Time // when it ends; zero if that is not known
	Renewed bool      // Until is put off by itself
}

// Accounts returns all sign-ins, sorted by server and person.
func (s *SignIn) Accounts(ctx context.Context) (all []Account, err error) {
	keys, err := s.keys(ctx, tokenPrefix)
	if err != nil {
		return nil, fmt.Errorf("list sign-ins: %w", err)
	}
	for _, storeKey := range keys {
		server, who, _ := strings.Cut(strings.TrimPrefix(storeKey, tokenPrefix), "\x00")
		r, err := s.account(key{server, chat.Person(who)}).current(ctx)
		if err != nil {
			return nil, err
		}
		if r != nil {
			all = append(all, Account{Server: server, Who: chat.Person(who), Until: r.Expiry, Renewed: r.Refresh != ""})
		}
	}
	return all, nil
}

// keys returns the keys of the bucket that begin with prefix, sorted.
func (s *SignIn) keys(ctx context.Context, prefix string) (all []string, err error) {
	for key, err := range s.bucket().Keys(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		all = append(all, key)
	}
	slices.Sort(all)
	return all, nil
}

// read returns the record of k, nil if there is none that can be read: the person is asked to sign in
// again then.
func (s *SignIn) read(ctx context.Context, k key) (*record, error) {
	sealed, _, err := s.bucket().Get(ctx, k.storeKey())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case errors.Is(err, store.ErrDamaged):
		s.config.Log.Warn("a sign-in is damaged: its person is asked to sign in again",
			"server", k.server, "person", k.who)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the sign-in to %s: %w", k.server, err)
	}
	box, err := s.box()
	if err != nil {
		return nil, err
	}
	var r record
	plain, err := box.Open(nil, nil, sealed, []byte(k.storeKey()))
	if err != nil || json.Unmarshal(plain, &r) != nil {
		s.config.Log.Warn("a sign-in was encrypted with another key: its person is asked to sign in again",
			"server", k.server, "person", k.who)
		return nil, nil
	}
	return &r, nil
}

// write encrypts r and writes it. Its place is part of what is encrypted, so that nobody's record can
// be made that of somebody else.
func (s *SignIn) write(ctx context.Context, k key, r *record) error {
	box, err := s.box()
	if err != nil {
		return err
	}
	plain, err := json.Marshal(r)
	if err != nil {
		return err
	}
	sealed := box.Seal(nil, nil, plain, []byte(k.storeKey()))
	if _, err := s.bucket().Put(ctx, k.storeKey(), sealed, store.Any); err != nil {
		return fmt.Errorf("save the sign-in to %s: %w", k.server, err)
	}
	return nil
}

func (s *SignIn) remove(ctx context.Context, k key) error {
	if err := s.bucket().Delete(ctx, k.storeKey()); err != nil {
		return fmt.Errorf("remove the sign-in to %s: %w", k.server, err)
	}
	return nil
}

// keySize is the length of the key, in bytes.
const keySize = 32

// box returns what encrypts records: with the key of KeyFile, and what the config adds to it. It makes nonces itself,
// and puts them before what it encrypts.
func (s *SignIn) box() (cipher.AEAD, error) {
	raw, err := readKey(s.config.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("the key of sign-ins: %w", err)
	}
	var salt []byte
	if s.config.Secret != nil {
		salt = []byte(s.config.Secret())
	}
	derived, err := hkdf.Key(sha256.New, raw, salt, "parley sign-ins to MCP servers", keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// readKey returns the key in file, which it makes if there is none.
func readKey(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = makeKey(file)
	}
	if err != nil {
		return nil, err
	}
	if len(raw) != keySize {
		return nil, fmt.Errorf("%s is damaged: remove it, and everybody signs in again", file)
	}
	return raw, nil
}

// makeKey writes a new key to file, whole or not at all. If somebody else does so at the same time,
// the first counts.
func makeKey(file string) ([]byte, error) {
	raw := make([]byte, keySize)
	_, _ = rand.Read(raw)                                     // never fails
	draft, err := os.CreateTemp(filepath.Dir(file), ".key-*") // mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(draft.Name())
	_, err = draft.Write(raw)
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return nil, err
	}
	err = os.Link(draft.Name(), file)
	if errors.Is(err, fs.ErrExist) {
		return os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	return raw, syncFolder(filepath.Dir(file))
}

// syncFolder has the names of the files in folder survive a power cut.
func syncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
