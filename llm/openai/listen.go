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

// maxListen is how long a transcription may take, the upload included.
const maxListen = 3 * time.Minute

// A Transcriber turns speech into text. It is safe for use by several goroutines.
type Transcriber struct {
	config   Config
	language string
}

// NewTranscriber returns the Transcriber that c describes, such as
// "whisper-1". The language of those who speak is given as ISO 639-1; "" lets
// the model find out. It does no I/O.
func NewTranscriber(c Config, language string) *Transcriber {
	return &Transcriber{config: c.whole(), language: language}
}

// Transcribe returns what is said in audio, "" if nobody speaks. Of name, what
// the file is called, only the ending counts: it tells the format. A failure is
// an *llm.Error, unless ctx ended: then it is ctx's error.
func (t *Transcriber) Transcribe(ctx context.Context, name string, audio io.Reader) (string, error) {
	limited, cancel := context.WithTimeout(ctx, maxListen)
	defer cancel()
	c := openai.DefaultConfig(t.config.APIKey)
	c.BaseURL, c.HTTPClient = t.config.BaseURL, &exchange{transport: t.config.Transport}
	text, err := openai.NewClientWithConfig(c).CreateTranscription(limited, openai.AudioRequest{
		Model: t.config.Model, Reader: audio, FilePath: "voice" + ending(name), Language: t.language,
		Format: openai.AudioResponseFormatJSON,
	})
	switch {
	case err == nil:
		return strings.TrimSpace(text.Text), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limited.Err() != nil:
		err = &llm.Error{Kind: llm.TimedOut, Err: fmt.Errorf("no text within %v", maxListen)}
	}
	if _, ok := errors.AsType[*llm.Error](err); !ok {
		err = cut(err) // an answer that is none
	}
	return "", t.config.failure(err)
}

// ending is that of name as transcribers know it.
func ending(name string) string {
	switch e := strings.ToLower(path.Ext(name)); e {
	case ".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".ogg", ".wav", ".webm":
		return e
	case ".aac":
		return ".m4a"
	}
	return ".ogg" // what messengers record, whatever they call it
}
