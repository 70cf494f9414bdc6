package agent

import (
	"context"
	"fmt"

	"parley/llm"
)

const (
	maxShown  = 20 << 20 // bytes of the pictures in a request
	maxInHand = 64 << 20 // bytes of those in all requests under way; each is in memory some three times
)

// waitForPictures waits until the pictures that the next request is to show fit
// in beside those of the requests under way, and returns the share that it takes:
// so many bytes, 0 if the model is shown none. No turn waits for another one
// while it has a share: that is given back as soon as the model has answered.
func (t *turn) waitForPictures(ctx context.Context, refused bool) (share int64, err error) {
	if refused || !t.model.Vision || t.pool.config.Workspace == nil {
		return 0, nil
	}
	for _, p := range t.session.History.Pictures() {
		share += t.pictureSize(p)
	}
	share = min(share, maxShown)
	if share == 0 || t.pool.pictures.TryAcquire(share) {
		return share, nil
	}
	t.doing(t.pool.texts.Doing.Turn)
	if err := t.pool.pictures.Acquire(ctx, share); err != nil {
		return 0, fmt.Errorf("wait for room to show pictures: %w", err)
	}
	t.doing(t.pool.texts.Doing.Thinking)
	return share, nil
}

// pictureSize returns how many bytes the picture of that name has, 0 if it cannot be shown.
func (t *turn) pictureSize(name string) int64 {
	at, err := t.pool.config.Workspace.Named(name)
	if err != nil {
		return 0
	}
	info, err := t.pool.config.Workspace.Stat(at)
	if err != nil || info.Size() > llm.MaxImage {
		return 0
	}
	return info.Size()
}

// album returns a function that loads those of the pictures at paths that the
// model can be shown, share bytes in all, nil if that is none.
func (t *turn) album(share int64) func(paths []string) []llm.Image {
	if share == 0 {
		return nil
	}
	left := int(share)
	return func(paths []string) (shown []llm.Image) {
		for _, p := range paths {
			at, err := t.pool.config.Workspace.Named(p)
			if size := t.pictureSize(p); err != nil || size == 0 || size > int64(left) {
				continue
			}
			data, err := t.pool.config.Workspace.ReadFile(at)
			if err != nil || len(data) > left {
				continue
			}
			if picture, err := llm.NewImage(data); err == nil {
				shown = append(shown, picture)
				left -= len(data)
			}
		}
		return shown
	}
}
