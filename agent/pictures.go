package agent

import (
	"context"
	"fmt"
	"mime"
	"path"
	"strings"

	"parley/chat"
	"parley/llm"
)

const (
	maxPictures   = 8        // that a request shows, the latest ones …
	fewPictures   = 4        // … and that stay when there are more: the beginning of the requests changes now and then, not each time
	maxShown      = 20 << 20 // bytes of the pictures in a request
	maxInHand     = 64 << 20 // bytes of those in all requests under way; each is in memory some three times
	pictureTokens = 1000     // estimated
)

// pictures returns the paths of the pictures among files, at most maxPictures,
// and how many more there are.
func pictures(files []chat.File) (paths []string, more int) {
	for _, f := range files {
		picture := strings.HasPrefix(f.Type, "image/") || strings.HasPrefix(mime.TypeByExtension(path.Ext(f.Path)), "image/")
		switch {
		case f.Path == "" || !picture:
		case len(paths) == maxPictures:
			more++
		default:
			paths = append(paths, f.Path)
		}
	}
	return paths, more
}

// showing counts the pictures that are to be shown.
func (h *history) showing() (n int) {
	for i := range h.entries {
		n += len(h.entries[i].pictures)
	}
	return n
}

// Pictures returns the paths of the pictures that the model is to be shown.
func (h *history) Pictures() (paths []string) {
	for i := range h.entries {
		paths = append(paths, h.entries[i].pictures...)
	}
	return paths
}

// dim makes words of the oldest pictures until keep are left, or, unless keep
// is 0, only those of one message.
func (h *history) dim(keep int) {
	left := h.showing()
	for i := range h.entries {
		e := &h.entries[i]
		n := len(e.pictures)
		if left <= keep || keep > 0 && left == n {
			return
		}
		left, e.dimmed, e.pictures = left-n, e.dimmed+n, nil
	}
}

// waitForPictures waits until the pictures that the next request is to show fit
// in beside those of the requests under way, and returns the share that it takes:
// so many bytes, 0 if the model is shown none. No turn waits for another one
// while it has a share: that is given back as soon as the model has answered.
func (t *turn) waitForPictures(ctx context.Context, refused bool) (share int64, err error) {
	if refused || !t.model.Vision || t.Workspace == nil {
		return 0, nil
	}
	for _, p := range t.session.history.Pictures() {
		share += t.pictureSize(p)
	}
	share = min(share, maxShown)
	if share == 0 || t.pictures.TryAcquire(share) {
		return share, nil
	}
	t.doing(t.Texts.Doing.Turn)
	if err := t.pictures.Acquire(ctx, share); err != nil {
		return 0, fmt.Errorf("wait for room to show pictures: %w", err)
	}
	t.doing(t.Texts.Doing.Thinking)
	return share, nil
}

// pictureSize returns how many bytes the picture of that name has, 0 if it cannot be shown.
func (t *turn) pictureSize(name string) int64 {
	at, err := t.Workspace.Named(name)
	if err != nil {
		return 0
	}
	info, err := t.Workspace.Stat(at)
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
			at, err := t.Workspace.Named(p)
			if size := t.pictureSize(p); err != nil || size == 0 || size > int64(left) {
				continue
			}
			data, err := t.Workspace.ReadFile(at)
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

// unseen tells the model, in the first line of text, of n pictures it is not shown.
func unseen(text string, n int) string {
	what := "a picture"
	switch {
	case n == 0:
		return text
	case n > 1:
		what = fmt.Sprintf("%d pictures", n)
	}
	head, rest, _ := strings.Cut(text, "]\n")
	return head + ", with " + what + " that you cannot see]\n" + rest
}
