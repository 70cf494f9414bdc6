package conversation

import (
	"fmt"
	"mime"
	"path"
	"strings"

	"parley/chat"
	"parley/llm"
)

const (
	maxPictures   = 8    // shown in a request, the latest ones
	fewPictures   = 4    // kept when there are more, so that the beginning of the requests changes seldom
	pictureTokens = 1000 // estimated
)

// pictures returns the paths of the pictures among files, at most maxPictures,
// and how many more there are.
func pictures(files []chat.File) (paths []string, more int) {
	for _, f := range files {
		picture := strings.HasPrefix(f.Type, "image/") ||
			strings.HasPrefix(mime.TypeByExtension(path.Ext(f.Path)), "image/")
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

// showing returns how many pictures are to be shown.
func (v *View) showing() (n int) {
	for i := range v.entries {
		n += len(v.entries[i].pictures)
	}
	return n
}

// Pictures returns the paths of the pictures that the model is to be shown.
func (v *View) Pictures() (paths []string) {
	for i := range v.entries {
		paths = append(paths, v.entries[i].pictures...)
	}
	return paths
}

// dim stops showing the oldest pictures until keep are left, or, unless keep is 0,
// only those of one message.
func (v *View) dim(keep int) {
	left := v.showing()
	for i := range v.entries {
		e := &v.entries[i]
		n := len(e.pictures)
		if left <= keep || keep > 0 && left == n {
			return
		}
		left -= n
		e.dimmed += n
		e.pictures = nil
	}
}

// ShowPictures says whether the model is shown pictures.
func (v *View) ShowPictures(can bool) { v.vision = can }

// ShowsPictures reports whether m shows pictures.
func ShowsPictures(m llm.Message) bool { return len(m.Images) > 0 }

// unseen returns text with n pictures that the model is not shown mentioned in its
// first line.
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
