package conversation

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"

	"parley/llm"
	"parley/workspace"
)

const (
	maxPictureBytes      = 20 << 20 // of the pictures in one request
	maxPictureBytesInUse = 64 << 20 // of those in all requests under way; each is in memory some three times
)

// An Album loads the pictures that models are shown, and bounds how many of them
// are in memory at once.
type Album struct {
	workspace *workspace.Workspace // nil: there are no pictures
	bytes     *semaphore.Weighted
}

// NewAlbum returns an Album of the pictures in w.
func NewAlbum(w *workspace.Workspace) *Album {
	return &Album{workspace: w, bytes: semaphore.NewWeighted(maxPictureBytesInUse)}
}

// Reserve waits until the pictures at paths fit in beside those of the requests
// under way, and returns how many bytes it has reserved for them; 0 if none can be
// shown. It calls wait before it waits. Nobody may wait for another request before
// the bytes are given back with Release.
func (a *Album) Reserve(ctx context.Context, paths []string, wait func()) (reserved int64, err error) {
	for _, p := range paths {
		reserved += a.size(p)
	}
	reserved = min(reserved, maxPictureBytes)
	if reserved == 0 || a.bytes.TryAcquire(reserved) {
		return reserved, nil
	}
	wait()
	if err := a.bytes.Acquire(ctx, reserved); err != nil {
		return 0, fmt.Errorf("wait for room to show pictures: %w", err)
	}
	return reserved, nil
}

// Release gives back what Reserve has reserved.
func (a *Album) Release(reserved int64) { a.bytes.Release(reserved) }

// size returns how many bytes the picture at path has, 0 if it cannot be shown.
func (a *Album) size(path string) int64 {
	if a.workspace == nil {
		return 0
	}
	at, err := a.workspace.Named(path)
	if err != nil {
		return 0
	}
	info, err := a.workspace.Stat(at)
	if err != nil || info.Size() > llm.MaxImage {
		return 0
	}
	return info.Size()
}

// Loader returns a function that loads those of the pictures at paths that a model
// can be shown, at most reserved bytes in all. It is nil if nothing is reserved.
func (a *Album) Loader(reserved int64) func(paths []string) []llm.Image {
	if reserved == 0 {
		return nil
	}
	left := int(reserved)
	return func(paths []string) (shown []llm.Image) {
		for _, p := range paths {
			if size := a.size(p); size == 0 || size > int64(left) {
				continue
			}
			picture, size, err := a.load(p, left)
			if err != nil {
				continue
			}
			shown = append(shown, picture)
			left -= size
		}
		return shown
	}
}

// load returns the picture at path and its size in bytes. The file may have grown
// since its size was asked.
func (a *Album) load(path string, maxBytes int) (picture llm.Image, size int, err error) {
	at, err := a.workspace.Named(path)
	if err != nil {
		return picture, 0, err
	}
	data, err := a.workspace.ReadFile(at)
	if err != nil {
		return picture, 0, err
	}
	if len(data) > maxBytes {
		return picture, 0, fmt.Errorf("%s has more than %d bytes", path, maxBytes)
	}
	picture, err = llm.NewImage(data)
	return picture, len(data), err
}
