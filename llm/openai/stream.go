package openai

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"parley/llm"
)

const maxLine = 2 * maxAnswer // bytes: JSON takes more room than the text in it

// An eventStream is the body of an answer, cleaned for go-openai: one "data:" line
// for each chunk and nothing else. Comments are dropped, and an error in any
// spelling becomes the error of Read.
type eventStream struct {
	body    watchedBody
	lines   *bufio.Scanner
	done    bool   // the provider said that the answer is complete
	event   string // the name of the current event
	pending []byte // to be returned by Read
	err     error
}

func newEventStream(body io.ReadCloser, w *watchdog) *eventStream {
	s := &eventStream{body: watchedBody{body: body, watchdog: w}}
	s.lines = bufio.NewScanner(s.body)
	s.lines.Buffer(nil, maxLine)
	return s
}

// A watchedBody tells its watchdog when bytes arrive.
type watchedBody struct {
	body     io.ReadCloser
	watchdog *watchdog
}

// Read implements io.Reader.
func (b watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.watchdog.noteBytes()
	}
	return n, err
}

// cutOff is the error of an answer that ended too early.
func cutOff(err error) *llm.Error { return &llm.Error{Kind: llm.Cut, Err: err} }

// Read implements io.Reader.
func (s *eventStream) Read(p []byte) (int, error) {
	for len(s.pending) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.readLine()
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	return n, nil
}

// Close implements io.Closer. If the answer is complete it reads to the end of the
// body, so that the connection can be used again.
func (s *eventStream) Close() error {
	if s.done {
		s.body.watchdog.shorten(drainTimeout)
		for s.lines.Scan() {
		}
	}
	return s.body.body.Close()
}

// readLine handles the next line.
func (s *eventStream) readLine() {
	if !s.lines.Scan() {
		s.err = io.EOF
		if err := s.lines.Err(); err != nil {
			s.err = cutOff(fmt.Errorf("read the answer: %w", err))
		}
		return
	}
	line := strings.TrimPrefix(s.lines.Text(), "\ufeff")
	field, value, _ := strings.Cut(line, ":")
	switch {
	case line == "":
		s.event = ""
	case field == "event":
		s.event = strings.TrimSpace(value)
	case field == "data":
		s.handleData(strings.TrimSpace(value))
	case line[0] == '{': // an error, from a proxy that ignores that this is a stream
		s.checkError([]byte(line))
	case line[0] == '<':
		s.err = &llm.Error{
			Kind: llm.Unreachable,
			Err:  errors.New("a web page answered in the model's place: is baseUrl right?"),
		}
	}
}

func (s *eventStream) handleData(payload string) {
	s.body.watchdog.noteChunk()
	if payload == "" {
		return
	}
	if payload == "[DONE]" {
		s.done = true
	} else if s.checkError([]byte(payload)) {
		return
	}
	if rest, ok := strings.CutPrefix(payload, "{"); ok {
		payload = "{ " + rest // go-openai takes {"error": for an error, even if it is null
	}
	s.pending = append(append(append(s.pending[:0], "data: "...), payload...), '\n')
}

// checkError makes payload the error of Read if it is an error.
func (s *eventStream) checkError(payload []byte) bool {
	if s.event != "error" && !bytes.Contains(payload, []byte(`"error"`)) {
		return false
	}
	err, certain := parseError(payload, 0)
	if certain || s.event == "error" {
		s.err = err
	}
	return s.err != nil
}
