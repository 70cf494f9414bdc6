package discord

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"path"
	"strings"

	"parley/channels/network"
	"parley/chat"
)

const maxUpload = 10 << 20 // bytes of one file; more where people pay

// newUpload returns the body of a message with the files of r, which the caller
// closes. The text names the files that cannot be sent.
func (s *sender) newUpload(fields map[string]any, r chat.Reply) (body any, closeFiles func()) {
	uploads, lost := network.OpenAll(s.texts.Files, r.Files, maxUpload, s.open, s.log)
	closeFiles = func() {
		for _, u := range uploads {
			u.File.Close()
		}
	}
	fields["content"] = strings.TrimSpace(r.Text + "\n" + lost)
	if len(uploads) == 0 {
		return fields, closeFiles
	}
	form := newMultipartForm()
	for i, u := range uploads {
		disposition := multipart.FileContentDisposition(fmt.Sprintf("files[%d]", i), u.Name)
		contentType := cmp.Or(u.Of.Type, mime.TypeByExtension(path.Ext(u.Of.Path)), "application/octet-stream")
		form.add(disposition, contentType, u.File, u.Size)
	}
	raw, _ := json.Marshal(fields) // of texts and numbers, which cannot fail
	form.add(`form-data; name="payload_json"`, "application/json", bytes.NewReader(raw), int64(len(raw)))
	return form.body(), closeFiles
}

// A multipartForm is a form whose parts are read only while it is sent.
type multipartForm struct {
	header bytes.Buffer      // what precedes the next part
	writer *multipart.Writer // to header
	parts  []io.Reader
	size   int64 // bytes of parts
}

func newMultipartForm() *multipartForm {
	f := &multipartForm{}
	f.writer = multipart.NewWriter(&f.header)
	return f
}

// add adds a part of that many bytes.
func (f *multipartForm) add(disposition, contentType string, content io.Reader, size int64) {
	_, _ = f.writer.CreatePart(textproto.MIMEHeader{ // writing to memory cannot fail
		"Content-Disposition": {disposition},
		"Content-Type":        {contentType},
	})
	f.parts = append(f.parts, strings.NewReader(f.header.String()), io.LimitReader(content, size))
	f.size += int64(f.header.Len()) + size
	f.header.Reset()
}

// body ends the form.
func (f *multipartForm) body() *requestBody {
	_ = f.writer.Close() // writing to memory cannot fail
	return &requestBody{
		content:     io.MultiReader(append(f.parts, &f.header)...),
		contentType: f.writer.FormDataContentType(),
		size:        f.size + int64(f.header.Len()),
	}
}
