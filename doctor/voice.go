package doctor

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"parley/llm"
)

// Transcription has transcribe turn a second of silence into text. id is the model at its provider.
func Transcription(
	ctx context.Context, id string, transcribe func(_ context.Context, name string, audio io.Reader) (string, error),
) Finding {
	start := time.Now()
	_, err := transcribe(ctx, "silence.wav", bytes.NewReader(silence()))
	if err == nil {
		return Finding{OK, fmt.Sprintf("%s listened for %.1f s", id, time.Since(start).Seconds()), ""}
	}
	return modelFailure(id, err, transcriptionAdvice)
}

// transcriptionAdvice says what to do about a model that does not transcribe.
func transcriptionAdvice(kind llm.Kind) string {
	switch kind {
	case llm.Auth:
		return "put a valid key in transcription.apiKey: voice messages are not understood without one"
	case llm.Quota:
		return "add credit at the provider"
	case llm.BadRequest, llm.TooLong:
		return "check transcription.model, transcription.baseUrl and transcription.language: " +
			"the provider may not have that model, or may not transcribe at all"
	case llm.Unreachable:
		return "check transcription.baseUrl, the network and HTTPS_PROXY"
	case llm.RateLimited, llm.Overloaded:
		return "wait a little"
	}
	return "try again; a local model may need time to load"
}

// What all transcribers read, local ones too.
const (
	sampleRate     = 16_000
	bytesPerSample = 2
)

// silence returns a second in which nobody speaks, as a WAV file.
func silence() []byte {
	const size = sampleRate * bytesPerSample
	var b bytes.Buffer
	b.WriteString("RIFF")
	b.Write(binary.LittleEndian.AppendUint32(nil, 36+size)) // of all that follows
	b.WriteString("WAVEfmt ")
	b.Write(binary.LittleEndian.AppendUint32(nil, 16)) // of the format
	b.Write(binary.LittleEndian.AppendUint16(nil, 1))  // PCM
	b.Write(binary.LittleEndian.AppendUint16(nil, 1))  // channel
	b.Write(binary.LittleEndian.AppendUint32(nil, sampleRate))
	b.Write(binary.LittleEndian.AppendUint32(nil, size)) // bytes a second
	b.Write(binary.LittleEndian.AppendUint16(nil, bytesPerSample))
	b.Write(binary.LittleEndian.AppendUint16(nil, 8*bytesPerSample))
	b.WriteString("data")
	b.Write(binary.LittleEndian.AppendUint32(nil, size))
	b.Write(make([]byte, size))
	return b.Bytes()
}
