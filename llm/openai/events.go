package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"parley/llm"
)

const maxLine = 2 * maxAnswer // bytes: an answer in JSON takes more room than by itself

// events is the body of an answer, cleaned for go-openai: one "data:" line for
// each piece and nothing else. Comments are dropped, an error in any spelling
// becomes the error of Read, and a whole answer in place of a stream becomes a
// stream of one piece.
type events struct {
	body    io.ReadCloser
	watch   *watch
	lines   *bufio.Reader
	json    bool // by its Content-Type
	begun   bool
	done    bool // the provider said that this was all
	event   string
	pending []byte
	err     error
}

func newEvents(resp *http.Response, w *watch) *events {
	e := &events{body: resp.Body, watch: w, json: strings.Contains(resp.Header.Get("Content-Type"), "json")}
	e.lines = bufio.NewReader(readerFunc(e.watched))
	return e
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (e *events) watched(p []byte) (int, error) {
	n, err := e.body.Read(p)
	if n > 0 {
		e.watch.alive()
	}
	if err != nil && err != io.EOF {
		err = cut(fmt.Errorf("read the answer: %w", err))
	}
	return n, err
}

func cut(err error) *llm.Error { return &llm.Error{Kind: llm.Cut, Err: err} }

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.pending) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.next()
	}
	n := copy(p, e.pending)
	e.pending = e.pending[n:]
	return n, nil
}

// Close implements io.Closer. Once the answer is whole it reads to the end of
// the body, for the connection to be used again.
func (e *events) Close() error {
	if e.done {
		e.watch.hurry(afterDone)
		io.CopyN(io.Discard, e.lines, 4<<10)
	}
	return e.body.Close()
}

// next takes in the next line, or the whole of a body that has no lines.
func (e *events) next() {
	if !e.begun {
		e.begun = true
		first, _ := e.lines.Peek(1)
		switch {
		case e.json, string(first) == "{":
			e.whole()
			return
		case string(first) == "<":
			e.err = &llm.Error{Kind: llm.Unreachable, Err: errors.New("a web page answered in the model's place: is baseUrl right?")}
			return
		}
	}
	line, err := e.line()
	e.err = err
	name, value, _ := strings.Cut(strings.TrimPrefix(line, "\ufeff"), ":")
	switch {
	case line == "":
		e.event = ""
	case name == "event":
		e.event = strings.TrimSpace(value)
	case name == "data":
		e.data(strings.TrimSpace(value))
	case line[0] == '{': // an error, written by a proxy that did not care that this is a stream
		e.fault([]byte(line))
	}
}

func (e *events) data(payload string) {
	e.watch.answered()
	switch {
	case payload == "":
		return
	case payload == "[DONE]":
		e.done = true
	case e.fault([]byte(payload)):
		return
	}
	if rest, ok := strings.CutPrefix(payload, "{"); ok {
		payload = "{ " + rest // go-openai would take {"error": for an error, even where it is null
	}
	e.pending = append(append(append(e.pending[:0], "data: "...), payload...), '\n')
}

// fault makes payload the error of Read, where it is one.
func (e *events) fault(payload []byte) bool {
	if e.event != "error" && !bytes.Contains(payload, []byte(`"error"`)) {
		return false
	}
	if c := complaintIn(payload); c.serious || e.event == "error" {
		e.err = c.failure(0)
		return true
	}
	return false
}

// whole takes a body that is one JSON object.
func (e *events) whole() {
	body, err := io.ReadAll(io.LimitReader(e.lines, maxLine+1))
	var compact bytes.Buffer
	switch {
	case err != nil:
		e.err = err
	case len(body) > maxLine:
		e.err = cut(errTooLarge)
	case json.Compact(&compact, body) != nil:
		e.err = cut(errors.New("the answer is not JSON"))
	default:
		e.err = io.EOF
		e.data(compact.String())
		e.done = true
	}
}

var errTooLarge = fmt.Errorf("the answer is larger than %d MB", maxAnswer>>20)

// line returns the next line less its end. With the last one comes the error.
func (e *events) line() (string, error) {
	var long []byte
	for {
		part, err := e.lines.ReadSlice('\n')
		if err == bufio.ErrBufferFull && len(long) <= maxLine {
			long = append(long, part...)
			continue
		}
		if err == bufio.ErrBufferFull {
			return "", cut(errTooLarge)
		}
		return strings.TrimRight(string(append(long, part...)), "\r\n"), err
	}
}
