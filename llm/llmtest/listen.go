package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Speech is a recording that the Server was asked to transcribe.
type Speech struct {
	Model, Language string
	Name            string // of the file
	Audio           []byte
	Refused         string // why the Server itself refused it
}

const (
	speechPath = "/v1/audio/transcriptions"
	maxSpeech  = 25 << 20 // bytes
)

var (
	speechFields = strings.Fields("model language prompt response_format temperature")
	speechKinds  = strings.Fields("flac m4a mp3 mp4 mpeg mpga oga ogg wav webm")
	twoLetters   = regexp.MustCompile(`^[a-z]{2}$`)
)

// Speeches returns all recordings so far, the refused ones too.
func (s *Server) Speeches() []Speech {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

// listen answers a request to the transcription endpoint.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	speech, ref := s.readSpeech(r)
	if ref == nil && s.Hear == nil {
		ref = refuse("model", "model_not_found", "The model '%s' does not exist or you do not have access to it.", speech.Model)
	}
	if ref != nil {
		speech.Refused = ref.Message
	}
	s.mu.Lock()
	s.heard = append(s.heard, speech)
	s.mu.Unlock()
	if ref != nil {
		ref.write(w)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	reply := s.Hear(ctx, speech)
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	if reply.Body == "" {
		w.Header().Set("Content-Type", "application/json")
		b, _ := json.Marshal(map[string]string{"text": reply.Text})
		reply.Body = string(b)
	}
	w.WriteHeader(max(reply.Status, 200))
	_, _ = io.WriteString(w, reply.Body)
}

// readSpeech reads and checks a form with an audio file.
func (s *Server) readSpeech(r *http.Request) (Speech, *refusal) {
	var out Speech
	if ref := s.authorise(r, speechPath, "multipart/form-data"); ref != nil {
		return out, ref
	}
	if err := r.ParseMultipartForm(maxSpeech); err != nil {
		return out, refuse("", "", "Could not parse multipart form: %v.", err)
	}
	for name, values := range r.MultipartForm.Value {
		if !slices.Contains(speechFields, name) || len(values) != 1 {
			return out, refuse(name, "unknown_parameter", "Unknown parameter: '%s'.", name)
		}
	}
	out.Model, out.Language = r.FormValue("model"), r.FormValue("language")
	files := r.MultipartForm.File["file"]
	switch {
	case out.Model == "":
		return out, missing("model")
	case out.Language != "" && !twoLetters.MatchString(out.Language):
		return out, refuse("language", "invalid_language_format", "Invalid language '%s'. Language parameter must be specified in ISO-639-1 format.", out.Language)
	case !strings.Contains(" json ", " "+r.FormValue("response_format")+" "):
		return out, refuse("response_format", "unsupported_value", "response_format '%s' is not compatible with the model.", r.FormValue("response_format"))
	case len(files) != 1 || len(r.MultipartForm.File) != 1:
		return out, missing("file")
	case files[0].Size > maxSpeech:
		return out, refuse("file", "", "Maximum content size limit (%d) exceeded (%d bytes read)", maxSpeech, files[0].Size)
	}
	out.Name = files[0].Filename
	if !slices.Contains(speechKinds, strings.TrimPrefix(path.Ext(out.Name), ".")) {
		return out, refuse("file", "", "Unrecognized file format. Supported formats: %s", fmt.Sprint(speechKinds))
	}
	f, err := files[0].Open()
	if err == nil {
		defer f.Close()
		out.Audio, err = io.ReadAll(f)
	}
	if err != nil || len(out.Audio) == 0 {
		return out, refuse("file", "", "Audio file is too short. Minimum audio length is 0.1 seconds.")
	}
	return out, nil
}
