package agent

import (
	"fmt"
	"mime"
	"path"
	"strings"

	"parley/chat"
	"parley/llm"
)

const (
	maxPictures = 8        // that a request shows, the latest ones …
	fewPictures = 4        // … and that stay when there are more: the beginning of the requests changes now and then, not each time
	maxShown    = 20 << 20 // bytes of the pictures in a request
	pictureSize = 1000     // estimated tokens
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

// album returns a function that loads those of the pictures at paths that the
// model can be shown, nil if that is none.
func (t *turn) album(refused bool) func(paths []string) []llm.Image {
	if refused || !t.model.Vision || t.Workspace == nil {
		return nil
	}
	left := maxShown
	return func(paths []string) (shown []llm.Image) {
		for _, p := range paths {
			at, err := t.Workspace.Named(p)
			if err != nil {
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
