package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"time"

	"parley/workspace"
)

// A backup is one file, a tar.gz of
//
//	parley.db       the store
//	config.json     as it is on disk, if there is one
//	workspace/…     the agent's files
//	manifest.json   what is in it, with the digest of each file: the last entry
//
// It holds all that was ever said and may hold secrets of the config (R-S6).
const (
	storeFile    = "parley.db"
	configFile   = "config.json"
	filesFolder  = "workspace"
	manifestFile = "manifest.json"
)

// A manifest says what a backup holds.
type manifest struct {
	Parley  string            `json:"parley"` // the version that made it
	Made    time.Time         `json:"made"`
	Secrets bool              `json:"secrets"` // always true: keep it as you keep the data folder
	Files   map[string]string `json:"files"`   // name -> SHA-256
}

// pack writes a backup of the store copy db, the config file and the folder of
// files to w.
func pack(ctx context.Context, w io.Writer, db, config string, files *workspace.Workspace) error {
	zip := gzip.NewWriter(w)
	p := packer{tar.NewWriter(zip), manifest{Parley: version(), Made: time.Now(), Secrets: true, Files: map[string]string{}}}
	err := p.file(storeFile, db)
	if err == nil {
		if err = p.file(configFile, config); errors.Is(err, fs.ErrNotExist) {
			err = nil // it ran on defaults
		}
	}
	if err == nil {
		err = p.folder(ctx, files)
	}
	if err == nil {
		err = p.close()
	}
	return errors.Join(err, zip.Close())
}

type packer struct {
	*tar.Writer
	manifest manifest
}

func (p *packer) file(name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return p.add(name, f)
}

// folder adds the plain files of w. Links are left out: they may lead anywhere.
func (p *packer) folder(ctx context.Context, w *workspace.Workspace) error {
	all, err := w.Named(".")
	if err != nil {
		return err
	}
	return w.Walk(all, func(at workspace.Path, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := w.OpenBig(at)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, workspace.ErrProtected) {
			return nil // it was removed meanwhile, or is another name of what is not the agent's
		} else if err != nil {
			return err
		}
		defer f.Close()
		return p.add(path.Join(filesFolder, at.String()), f)
	})
}

// add adds f as long as it is now. What it loses meanwhile is zero.
func (p *packer) add(name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if err := p.WriteHeader(&tar.Header{Name: name, Size: size, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(p, sum), io.LimitReader(f, size))
	if err == nil && n < size {
		_, err = io.CopyN(io.MultiWriter(p, sum), zeros{}, size-n)
	}
	p.manifest.Files[name] = digestOf(sum)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func digestOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// close adds the manifest.
func (p *packer) close() error {
	text, err := json.MarshalIndent(p.manifest, "", "  ")
	if err != nil {
		return err
	}
	if err := p.WriteHeader(&tar.Header{Name: manifestFile, Size: int64(len(text)), Mode: 0o600, ModTime: p.manifest.Made}); err != nil {
		return err
	}
	if _, err := p.Write(text); err != nil {
		return err
	}
	return p.Close()
}

// unpack reads the backup r to its end and writes its files into dir, or
// nowhere if dir is nil. An error says that it is not whole, or no backup: what
// was written then is to be thrown away.
func unpack(ctx context.Context, r io.Reader, dir *os.Root) (m manifest, err error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return m, fmt.Errorf("it is no backup: %w", err)
	}
	found := map[string]string{}
	for in := tar.NewReader(zip); ; {
		head, err := in.Next()
		switch {
		case ctx.Err() != nil:
			return m, ctx.Err()
		case err == io.EOF && m.Files == nil:
			return m, errors.New("it is cut off, or no backup of Parley: it has no manifest")
		case err == io.EOF && !maps.Equal(found, m.Files):
			return m, errors.New("its files are not those that its manifest names: it is damaged")
		case err == io.EOF:
			if _, err := io.Copy(io.Discard, zip); err != nil { // its checksum stands at its end
				return m, fmt.Errorf("it is damaged: %w", err)
			}
			return m, nil
		case err != nil:
			return m, fmt.Errorf("it is damaged: %w", err)
		case head.Typeflag != tar.TypeReg || !filepath.IsLocal(head.Name):
			return m, fmt.Errorf("%q does not belong in a backup", head.Name)
		case head.Name == manifestFile:
			if err := json.NewDecoder(in).Decode(&m); err != nil {
				return m, fmt.Errorf("its manifest: %w", err)
			}
			continue
		}
		sum := sha256.New()
		if err := unpackFile(dir, head, io.TeeReader(in, sum)); err != nil {
			return m, fmt.Errorf("%s: %w", head.Name, err)
		}
		found[head.Name] = digestOf(sum)
	}
}

func unpackFile(dir *os.Root, head *tar.Header, r io.Reader) error {
	if dir == nil {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	if err := dir.MkdirAll(path.Dir(head.Name), 0o700); err != nil {
		return err
	}
	f, err := dir.OpenFile(head.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(head.Mode)&0o700|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}
