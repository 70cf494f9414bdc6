// Package backup makes backups of Parley's data and restores them: archives of
// everything, and daily copies of the store. It also verifies the store while it
// is in use, and reports damage.
package backup

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
	"math"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"parley/workspace"
)

// An archive is a tar.gz of
//
//	parley.db       the store
//	config.json     as it is on disk, if there is one
//	custom_tools/…  the tools that owners wrote
//	workspace/…     the agent's files
//	manifest.json   the last entry: the digest of each file
//
// It holds everything that was ever said and may hold secrets of the config (R-S6).
const (
	StoreFile       = "parley.db"
	configFile      = "config.json"
	toolsFolder     = "custom_tools"
	workspaceFolder = "workspace"
	manifestFile    = "manifest.json"
)

// A manifest describes an archive.
type manifest struct {
	Parley  string            `json:"parley"` // the version that made it
	Made    time.Time         `json:"made"`
	Secrets bool              `json:"secrets"` // always true: keep the archive as safe as the data folder
	Files   map[string]string `json:"files"`   // name -> SHA-256
}

// Contents says what goes into an archive.
type Contents struct {
	Store   string // a copy of the store that does not change any more
	Config  string // the config file; it may be missing
	Files   *workspace.Workspace
	Tools   *workspace.Workspace // the folder of the custom tools; nil: there is none
	Version string               // of Parley
}

// Write writes an archive of c to w.
func Write(ctx context.Context, w io.Writer, c Contents) error {
	zip := gzip.NewWriter(w)
	m := manifest{Parley: c.Version, Made: time.Now(), Secrets: true, Files: map[string]string{}}
	p := packer{tar: tar.NewWriter(zip), manifest: m}
	return errors.Join(p.pack(ctx, c), zip.Close())
}

type packer struct {
	tar      *tar.Writer
	manifest manifest
}

func (p *packer) pack(ctx context.Context, c Contents) error {
	if err := p.addFile(StoreFile, c.Store); err != nil {
		return err
	}
	err := p.addFile(configFile, c.Config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without one, the defaults apply
		return err
	}
	if c.Tools != nil {
		if err := p.addFolder(ctx, toolsFolder, c.Tools); err != nil {
			return err
		}
	}
	if err := p.addFolder(ctx, workspaceFolder, c.Files); err != nil {
		return err
	}
	return p.close()
}

func (p *packer) addFile(name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return p.add(name, f)
}

// addFolder adds the regular files of w as folder. Links are left out, because they
// may lead anywhere.
func (p *packer) addFolder(ctx context.Context, folder string, w *workspace.Workspace) error {
	all, err := w.Named(".")
	if err != nil {
		return err
	}
	return w.Walk(all, func(at workspace.Path, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if isGone(err) { // a folder that a program has removed or replaced meanwhile
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := w.OpenBig(at)
		if isGone(err) || errors.Is(err, workspace.ErrProtected) { // or a second name of a file that is not the agent's
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return p.add(path.Join(folder, at.String()), f)
	})
}

// isGone reports whether err says that a file or folder that was listed is no longer one.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, workspace.ErrNotFile)
}

// add adds f with its current length. If the file becomes shorter in the meantime,
// it is padded with zeros.
func (p *packer) add(name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	head := &tar.Header{Name: name, Size: size, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	if err := p.tar.WriteHeader(head); err != nil {
		return err
	}
	sum := sha256.New()
	out := io.MultiWriter(p.tar, sum)
	n, err := io.Copy(out, io.LimitReader(f, size))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := io.CopyN(out, zeros{}, size-n); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.manifest.Files[name] = hexDigest(sum)
	return nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func hexDigest(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// close adds the manifest.
func (p *packer) close() error {
	text, err := json.MarshalIndent(p.manifest, "", "  ")
	if err != nil {
		return err
	}
	head := &tar.Header{Name: manifestFile, Size: int64(len(text)), Mode: 0o600, ModTime: p.manifest.Made}
	if err := p.tar.WriteHeader(head); err != nil {
		return err
	}
	if _, err := p.tar.Write(text); err != nil {
		return err
	}
	return p.tar.Close()
}

// fillChecked writes an archive to f, with what fill writes, and reads it back.
func fillChecked(ctx context.Context, f *os.File, fill func(io.Writer) error) error {
	if err := fill(f); err != nil {
		return err
	}
	return Check(ctx, io.NewSectionReader(f, 0, math.MaxInt64))
}

// WriteFile writes an archive to the new file name; fill writes its content. The
// file gets this name only when it is complete, checked and on disk.
func WriteFile(ctx context.Context, name string, fill func(io.Writer) error) error {
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s is there already", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".backup-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = fillChecked(ctx, f, fill)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncFolders(filepath.Dir(name))
}

// Check reads the archive r to its end, and returns why it is not complete.
func Check(ctx context.Context, r io.Reader) error {
	_, err := unpack(ctx, r, nil)
	return err
}

// unpack reads the archive r to its end, and writes its files into dir, or nowhere
// if dir is nil. After an error, the files that were written must be deleted.
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
			if _, err := io.Copy(io.Discard, zip); err != nil { // gzip's checksum is at the end
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
		found[head.Name] = hexDigest(sum)
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
	mode := fs.FileMode(head.Mode)&0o700 | 0o600
	f, err := dir.OpenFile(head.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}
