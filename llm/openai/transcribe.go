package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"parley/llm"
)

// transcribeTimeout is how long a transcription may take, the upload included.
const transcribeTimeout = 3 * time.Minute

// A Transcriber turns speech into text. It may be used concurrently.
type Transcriber struct {
	config   Config
	language string
}

// NewTranscriber returns the Transcriber that c describes, such as "whisper-1". The
// language of the speakers is given as ISO 639-1; if it is "", the model detects
// it. NewTranscriber does no I/O.
func NewTranscriber(c Config, language string) *Transcriber {
	return &Transcriber{config: c.withDefaults(), language: language}
}

// Transcribe returns what is said in audio, "" if nobody speaks. Of the file's name
// only the extension counts: it tells the format. An error is an *llm.Error, unless
// ctx ended: then it is ctx's error.
func (t *Transcriber) Transcribe(ctx context.Context, name string, audio io.Reader) (string, error) {
	limited, cancel := context.WithTimeout(ctx, transcribeTimeout)
	defer cancel()
	client := t.config.client(&transport{base: t.config.Transport})
	text, err := client.CreateTranscription(limited, openai.AudioRequest{
		Model:    t.config.Model,
		Reader:   audio,
		FilePath: "voice" + audioExtension(name),
		Language: t.language,
		Format:   openai.AudioResponseFormatJSON,
	})
	switch {
	case err == nil:
		return strings.TrimSpace(text.Text), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limited.Err() != nil:
		err = &llm.Error{Kind: llm.TimedOut, Err: fmt.Errorf("no text within %v", transcribeTimeout)}
	}
	if _, ok := errors.AsType[*llm.Error](err); !ok {
		err = cutOff(err) // something that is not a transcription
	}
	return "", t.config.newError(err)
}

// audioExtension returns the extension of name as transcribers know it.
func audioExtension(name string) string {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".ogg", ".wav", ".webm":
		return ext
	case ".aac":
		return ".m4a"
	case ".weba":
		return ".webm"
	}
	return ".ogg" // the format of messengers, whatever extension they use
}
