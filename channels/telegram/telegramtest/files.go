package telegramtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // sizes of photos
	_ "image/png"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// What bots may upload and download, in bytes.
const (
	MaxPhoto    = 10 << 20
	MaxUpload   = 50 << 20
	MaxDownload = 20 << 20
)

// A File is what a message shows besides its text.
type File struct {
	Kind string // "photo", "document", "voice", "audio", "video", "video_note", "animation" or "sticker"
	Name string
	Type string // MIME type, as the client says
	Data []byte
	Size int64 // if it is not len(Data)

	id string
}

// an upload is a file within a request.
type uploaded struct {
	name string
	data []byte
}

// Post lets a person send f with a caption, which may be empty, and returns the
// id of the message.
func (s *Server) Post(chat int64, f File, caption string, opts ...Option) int {
	return s.post(chat, "", append([]Option{func(m *draft) { m.file, m.caption = &f, caption }}, opts...))
}

// InAlbum makes it part of an album.
func InAlbum(id string) Option { return With(map[string]any{"media_group_id": id}) }

// keep gives f its id. s.mu is held.
func (s *Server) keep(f *File) {
	f.id = fmt.Sprintf("%s-%d", strings.ToUpper(f.Kind), len(s.files))
	s.files = append(s.files, *f)
}

// fields returns f as the API shows it.
func (f File) fields() any {
	size := f.Size
	if size == 0 {
		size = int64(len(f.Data))
	}
	one := map[string]any{"file_id": f.id, "file_unique_id": "u" + f.id, "file_size": size}
	if f.Kind == "photo" {
		small := map[string]any{
			"file_id": "thumb", "file_unique_id": "thumb", "width": 90, "height": 90, "file_size": 900,
		}
		one["width"], one["height"] = 1280, 1280
		return []any{small, one}
	}
	if f.Name != "" {
		one["file_name"] = f.Name
	}
	if f.Type != "" {
		one["mime_type"] = f.Type
	}
	switch f.Kind {
	case "voice", "audio", "video", "video_note", "animation":
		one["duration"] = 3
	}
	return one
}

// pathOf returns the path of f in the API. The name in it is not the sender's.
func pathOf(f File) string {
	return path.Join(f.Kind+"s", "file_"+f.id)
}

func (s *Server) getFile(p params) (any, *apiError) {
	i := slices.IndexFunc(s.files, func(f File) bool { return f.id == p["file_id"] })
	if i < 0 {
		return nil, bad("invalid file_id")
	}
	f := s.files[i]
	if max(f.Size, int64(len(f.Data))) > MaxDownload {
		return nil, bad("file is too big")
	}
	return map[string]any{
		"file_id": f.id, "file_unique_id": "u" + f.id, "file_size": len(f.Data), "file_path": pathOf(f),
	}, nil
}

// download answers with the bytes of a file.
func (s *Server) download(w http.ResponseWriter, r *http.Request, path string) {
	defer s.count("download")
	if s.fault("download", 0).before(s, w, r) {
		return
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.files, func(f File) bool { return pathOf(f) == path })
	var data []byte
	if i >= 0 {
		data = s.files[i].Data
	}
	s.mu.Unlock()
	if i < 0 {
		answer(w, nil, &apiError{Code: http.StatusNotFound, Text: "Not Found"})
		return
	}
	_, _ = w.Write(data) // the client is gone
}

// sendFile returns the method that sends one file of that kind.
func sendFile(kind string) func(*Server, params) (any, *apiError) {
	return func(s *Server, p params) (any, *apiError) {
		r, failure := s.open(p)
		if failure == nil {
			failure = s.limit(r.id)
		}
		if failure != nil {
			return nil, failure
		}
		f, failure := s.file(kind, p[kind])
		if failure != nil {
			return nil, failure
		}
		m, failure := s.compose(r, p)
		if failure != nil {
			return nil, failure
		}
		if m.Text, m.Entities, failure = caption(p["caption"], p["parse_mode"]); failure != nil {
			return nil, failure
		}
		m.Files = []File{f}
		return s.json(r, s.show(r, m)), nil
	}
}

func (s *Server) sendMediaGroup(p params) (any, *apiError) {
	r, failure := s.open(p)
	if failure != nil {
		return nil, failure
	}
	var media []struct {
		Type    string `json:"type"`
		Media   string `json:"media"`
		Caption string `json:"caption"`
		Mode    string `json:"parse_mode"`
	}
	if err := json.Unmarshal([]byte(p["media"]), &media); err != nil {
		return nil, bad("can't parse media: %v", err)
	}
	if len(media) < 2 || len(media) > 10 {
		return nil, bad("wrong number of messages in the album")
	}
	var all []Message
	for _, one := range media {
		for _, alone := range []string{"document", "audio"} {
			if (one.Type == alone) != (media[0].Type == alone) {
				return nil, bad("%s can't be mixed with other media types", alone)
			}
		}
		if !slices.Contains([]string{"photo", "video", "document", "audio"}, one.Type) {
			return nil, bad("type must be one of photo, video, document, audio")
		}
		name, ok := strings.CutPrefix(one.Media, "attach://")
		if !ok {
			return nil, bad("wrong remote file identifier specified")
		}
		f, failure := s.file(one.Type, p[name])
		if failure != nil {
			return nil, failure
		}
		m, failure := s.compose(r, p)
		if failure != nil {
			return nil, failure
		}
		if m.Text, m.Entities, failure = caption(one.Caption, one.Mode); failure != nil {
			return nil, failure
		}
		m.Files = []File{f}
		all = append(all, m)
	}
	for range all {
		if failure := s.limit(r.id); failure != nil {
			return nil, failure
		}
	}
	var shown []any
	album := strconv.Itoa(len(s.files))
	for _, m := range all {
		m.Album = album
		shown = append(shown, s.json(r, s.show(r, m)))
	}
	return shown, nil
}

// file returns what was uploaded, as a file of that kind.
func (s *Server) file(kind, token string) (File, *apiError) {
	up, ok := s.uploads[token]
	switch {
	case !ok:
		return File{}, bad("there is no %s in the request", kind)
	case len(up.data) == 0:
		return File{}, bad("file must be non-empty")
	case len(up.data) > MaxUpload:
		return File{}, &apiError{Code: http.StatusRequestEntityTooLarge, Text: "Request Entity Too Large"}
	case kind == "photo":
		if failure := checkPhoto(up.data); failure != nil {
			return File{}, failure
		}
	}
	f := File{Kind: kind, Name: up.name, Data: up.data}
	s.keep(&f)
	return f, nil
}

// checkPhoto refuses files that Telegram does not show as photos.
func checkPhoto(data []byte) *apiError {
	size, kind, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case len(data) > MaxPhoto:
		return bad("PHOTO_SAVE_FILE_INVALID")
	case err != nil || kind == "gif":
		return bad("IMAGE_PROCESS_FAILED")
	case size.Width+size.Height > 10_000, size.Width > 20*size.Height, size.Height > 20*size.Width:
		return bad("PHOTO_INVALID_DIMENSIONS")
	}
	return nil
}

// caption returns what is shown of text, which may be empty.
func caption(text, mode string) (shown string, entities []Entity, failure *apiError) {
	shown, entities, failure = parseText(text, mode)
	if failure == nil && len(utf16.Encode([]rune(shown))) > 1024 {
		failure = bad("message caption is too long")
	}
	return shown, entities, failure
}
